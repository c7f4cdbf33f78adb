#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "base/hash.h"

namespace tinygrad {

/// A vector whose first N elements live inside it. Contiguous, converts to std::span, compares and hashes by value.
/// Moving one that spilled to the heap is O(1); references do not survive a move of one that did not.
template <class T, size_t N>
class SmallVector {
  static_assert(N > 0 && std::is_nothrow_move_constructible_v<T>);

 public:
  using value_type = T;
  using size_type = size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() noexcept {}
  // The others delegate, so that an element's copy that throws still runs the destructor.
  explicit SmallVector(size_t count, const T& value = T()) : SmallVector() { resize(count, value); }
  SmallVector(std::initializer_list<T> values) : SmallVector() { append(values.begin(), values.end()); }
  template <std::input_iterator It>
  SmallVector(It first, It last) : SmallVector() {
    append(first, last);
  }
  /// From any other range: a span, a std::vector, a view.
  template <std::ranges::input_range R>
    requires(!std::same_as<std::remove_cvref_t<R>, SmallVector> && std::convertible_to<std::ranges::range_reference_t<R>, T>)
  explicit SmallVector(R&& values) : SmallVector() {
    for (auto&& v : values) emplace_back(std::forward<decltype(v)>(v));
  }
  SmallVector(const SmallVector& other) : SmallVector() { append(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  ~SmallVector() { destroy(); }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) *this = SmallVector(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this == &other) return *this;
    destroy();
    take(other);
    return *this;
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  auto rbegin() const noexcept { return std::reverse_iterator(end()); }
  auto rend() const noexcept { return std::reverse_iterator(begin()); }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }
  T& front() noexcept { return data_[0]; }
  const T& front() const noexcept { return data_[0]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }

  void reserve(size_t count) {
    if (count > capacity_) move_to(allocate(count), count);
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ < capacity_) {
      std::construct_at(data_ + size_, std::forward<Args>(args)...);
      return data_[size_++];
    }
    // The new element is made before the old ones move: an argument may refer to one of them.
    size_t grown = size_t{capacity_} * 2;
    T* fresh = allocate(grown);
    try {
      std::construct_at(fresh + size_, std::forward<Args>(args)...);
    } catch (...) {
      std::allocator<T>().deallocate(fresh, grown);
      throw;
    }
    move_to(fresh, grown);
    return data_[size_++];
  }
  void pop_back() noexcept { std::destroy_at(data_ + --size_); }
  /// The range must not be part of this vector.
  template <class It>
  void append(It first, It last) {
    if constexpr (std::forward_iterator<It>) reserve(size_ + static_cast<size_t>(std::distance(first, last)));
    for (; first != last; ++first) emplace_back(*first);
  }
  T* insert(const T* position, T value) {
    std::ptrdiff_t at = position - data_;
    emplace_back(std::move(value));
    std::rotate(data_ + at, end() - 1, end());
    return data_ + at;
  }
  T* erase(const T* position) { return erase(position, position + 1); }
  T* erase(const T* first, const T* last) {
    T* to = data_ + (first - data_);
    if (first == last) return to;
    T* rest = std::move(data_ + (last - data_), end(), to);
    std::destroy(rest, end());
    size_ = static_cast<uint32_t>(rest - data_);
    return to;
  }
  void resize(size_t count, const T& value = T()) {
    if (count > capacity_) return grow_to(count, T(value));
    while (size_ > count) pop_back();
    while (size_ < count) emplace_back(value);
  }
  void clear() noexcept {
    std::destroy_n(data_, size_);
    size_ = 0;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  friend auto operator<=>(const SmallVector& a, const SmallVector& b)
    requires std::three_way_comparable<T>
  {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }
  friend uint64_t hash_value(const SmallVector& v) noexcept { return hash_range(std::span<const T>(v)); }

 private:
  T* inline_data() noexcept { return reinterpret_cast<T*>(inline_); }
  static T* allocate(size_t count) { return std::allocator<T>().allocate(count); }

  /// `value` is a copy: growing may move the element that the caller's reference names.
  void grow_to(size_t count, T value) {
    reserve(count);
    while (size_ < count) emplace_back(value);
  }
  void free_heap() noexcept {
    if (data_ != inline_data()) std::allocator<T>().deallocate(data_, capacity_);
  }
  void destroy() noexcept {
    clear();
    free_heap();
  }
  void move_to(T* fresh, size_t count) noexcept {
    std::uninitialized_move_n(data_, size_, fresh);
    std::destroy_n(data_, size_);
    free_heap();
    data_ = fresh;
    capacity_ = static_cast<uint32_t>(count);
  }
  /// Takes the elements of `other`, which ends empty; this object holds none.
  void take(SmallVector& other) noexcept {
    data_ = inline_data();
    capacity_ = N;
    if (other.data_ != other.inline_data()) {
      data_ = std::exchange(other.data_, other.inline_data());
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
    } else {
      std::uninitialized_move_n(other.data_, other.size_, data_);
      size_ = other.size_;
      other.clear();
    }
  }

  T* data_ = inline_data();
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace tinygrad

template <class T, size_t N>
struct std::hash<tinygrad::SmallVector<T, N>> {
  size_t operator()(const tinygrad::SmallVector<T, N>& v) const noexcept { return hash_value(v); }
};
