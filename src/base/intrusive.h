#pragma once

#include <cstddef>
#include <string_view>  // std::hash
#include <type_traits>
#include <utility>

namespace tinygrad {

/// A counted pointer to an object that holds its own count: T has `void retain() const noexcept` and
/// `void release() const noexcept`, the latter destroying the object with the last reference.
template <class T>
class IntrusivePtr {
 public:
  IntrusivePtr() = default;
  IntrusivePtr(std::nullptr_t) {}
  /// Takes a new reference.
  explicit IntrusivePtr(T* object) : object_(object) {
    if (object_) object_->retain();
  }
  IntrusivePtr(const IntrusivePtr& other) : IntrusivePtr(other.object_) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept : object_(other.detach()) {}
  template <class U>
    requires(std::is_convertible_v<U*, T*>)
  IntrusivePtr(const IntrusivePtr<U>& other) : IntrusivePtr(other.get()) {}
  ~IntrusivePtr() {
    if (object_) object_->release();
  }

  IntrusivePtr& operator=(const IntrusivePtr& other) {
    IntrusivePtr(other).swap(*this);
    return *this;
  }
  IntrusivePtr& operator=(IntrusivePtr&& other) noexcept {
    IntrusivePtr(std::move(other)).swap(*this);
    return *this;
  }

  /// Takes over a reference that the caller already owns.
  static IntrusivePtr adopt(T* object) noexcept {
    IntrusivePtr result;
    result.object_ = object;
    return result;
  }
  /// Gives the reference to the caller, who must release it.
  [[nodiscard]] T* detach() noexcept { return std::exchange(object_, nullptr); }
  void swap(IntrusivePtr& other) noexcept { std::swap(object_, other.object_); }

  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

  /// By identity. There is no order: addresses differ from run to run.
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) noexcept { return a.object_ == b.object_; }
  friend bool operator==(const IntrusivePtr& a, std::nullptr_t) noexcept { return a.object_ == nullptr; }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
IntrusivePtr<T> make_intrusive(Args&&... args) {
  return IntrusivePtr<T>(new T(std::forward<Args>(args)...));
}

}  // namespace tinygrad

template <class T>
struct std::hash<tinygrad::IntrusivePtr<T>> {
  size_t operator()(const tinygrad::IntrusivePtr<T>& p) const noexcept { return std::hash<T*>{}(p.get()); }
};
