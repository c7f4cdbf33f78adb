#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "uop/uop.h"

namespace tinygrad {
namespace detail {

inline const Node* address(const Node* key) { return key; }
inline const Node* address(const UOp& key) { return key.get(); }

/// A hash map from nodes to T, keyed by identity; Key is how it holds on to them. Iteration order is not offered: it would depend on
/// addresses.
template <class T, class Key>
class NodeTable {
 public:
  /// Takes no memory before something is put in.
  explicit NodeTable(size_t expected = 16) : first_capacity_(std::bit_ceil(expected * 2 + 8)) {}

  T* find(const Node* key) {
    if (size_ == 0) return nullptr;
    for (size_t i = slot(key);; i = (i + 1) & mask_) {
      if (address(cells_[i].key) == key) return &cells_[i].value;
      if (!address(cells_[i].key)) return nullptr;
    }
  }
  const T* find(const Node* key) const { return const_cast<NodeTable*>(this)->find(key); }
  T* find(const UOp& u) { return find(u.get()); }
  const T* find(const UOp& u) const { return find(u.get()); }
  bool contains(const UOp& u) const { return find(u) != nullptr; }

  /// The value of `key`, default-made if absent.
  template <class N>
  T& operator[](const N& key) {
    return *insert(key, T{}).first;
  }

  /// Inserts if absent; the value there, and whether it is new.
  template <class N>
  std::pair<T*, bool> insert(const N& key, T value) {
    if ((size_ + 1) * 4 > cells_.size() * 3) rehash(std::max(first_capacity_, cells_.size() * 2));
    for (size_t i = slot(address(key));; i = (i + 1) & mask_) {
      if (address(cells_[i].key) == address(key)) return {&cells_[i].value, false};
      if (!address(cells_[i].key)) {
        cells_[i] = {held(key), std::move(value)};
        ++size_;
        return {&cells_[i].value, true};
      }
    }
  }

  size_t size() const { return size_; }

 private:
  struct Cell {
    Key key{};
    [[no_unique_address]] T value{};
  };

  template <class N>
  static Key held(const N& key) {
    if constexpr (std::is_same_v<Key, UOp>) {
      return UOp::share(address(key));
    } else {
      return address(key);
    }
  }

  size_t slot(const Node* key) const { return size_t((reinterpret_cast<uintptr_t>(key) >> 4) * 0x9E3779B97F4A7C15ull >> 20) & mask_; }

  void rehash(size_t capacity) {
    std::vector<Cell> old = std::move(cells_);
    cells_ = std::vector<Cell>(capacity);
    mask_ = capacity - 1;
    size_ = 0;
    for (Cell& c : old)
      if (address(c.key)) insert(c.key, std::move(c.value));
  }

  std::vector<Cell> cells_;
  size_t first_capacity_;
  size_t mask_ = 0;
  size_t size_ = 0;
};

}  // namespace detail

/// For the time of one pass over a graph that somebody holds: it borrows its keys.
template <class T>
using NodeMap = detail::NodeTable<T, const Node*>;

/// Where keys may be dropped meanwhile, as what a pass makes may be: it owns them, so that no other node comes to lie at the address of
/// one.
template <class T>
using NodeCache = detail::NodeTable<T, UOp>;

/// A set of nodes, which it borrows.
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
