#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "uop/uop.h"

namespace tinygrad {

/// A hash map from nodes to T, keyed by identity, for the time of one pass. It holds no references: whoever fills it keeps the
/// nodes alive. Iteration order is not offered: it would depend on addresses.
template <class T>
class NodeMap {
 public:
  /// Takes no memory before something is put in.
  explicit NodeMap(size_t expected = 16) : first_capacity_(std::bit_ceil(expected * 2 + 8)) {}

  T* find(const Node* key) {
    if (size_ == 0) return nullptr;
    for (size_t i = slot(key);; i = (i + 1) & mask_) {
      if (cells_[i].key == key) return &cells_[i].value;
      if (!cells_[i].key) return nullptr;
    }
  }
  const T* find(const Node* key) const { return const_cast<NodeMap*>(this)->find(key); }
  T* find(const UOp& u) { return find(u.get()); }
  const T* find(const UOp& u) const { return find(u.get()); }
  bool contains(const UOp& u) const { return find(u) != nullptr; }

  /// The value of `key`, default-made if absent.
  T& operator[](const Node* key) { return *insert(key, T{}).first; }
  T& operator[](const UOp& u) { return (*this)[u.get()]; }

  /// Inserts if absent; the value there, and whether it is new.
  std::pair<T*, bool> insert(const Node* key, T value) {
    if ((size_ + 1) * 4 > cells_.size() * 3) rehash(std::max(first_capacity_, cells_.size() * 2));
    for (size_t i = slot(key);; i = (i + 1) & mask_) {
      if (cells_[i].key == key) return {&cells_[i].value, false};
      if (!cells_[i].key) {
        cells_[i] = {key, std::move(value)};
        ++size_;
        return {&cells_[i].value, true};
      }
    }
  }
  std::pair<T*, bool> insert(const UOp& u, T value) { return insert(u.get(), std::move(value)); }

  size_t size() const { return size_; }

 private:
  struct Cell {
    const Node* key = nullptr;
    [[no_unique_address]] T value{};
  };

  size_t slot(const Node* key) const { return size_t((reinterpret_cast<uintptr_t>(key) >> 4) * 0x9E3779B97F4A7C15ull >> 20) & mask_; }

  void rehash(size_t capacity) {
    std::vector<Cell> old = std::move(cells_);
    cells_ = std::vector<Cell>(capacity);
    mask_ = capacity - 1;
    size_ = 0;
    for (Cell& c : old)
      if (c.key) insert(c.key, std::move(c.value));
  }

  std::vector<Cell> cells_;
  size_t first_capacity_;
  size_t mask_ = 0;
  size_t size_ = 0;
};

/// A set of nodes, with the same manners.
class NodeSet {
 public:
  explicit NodeSet(size_t expected = 16) : map_(expected) {}
  /// True if it was not there.
  bool insert(const UOp& u) { return map_.insert(u, {}).second; }
  bool contains(const UOp& u) const { return map_.contains(u); }
  size_t size() const { return map_.size(); }

 private:
  struct Nothing {};
  NodeMap<Nothing> map_;
};

}  // namespace tinygrad
