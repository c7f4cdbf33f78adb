#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tinygrad {

/// A map of at most `most` entries, for caches of processes that never end: where another one would not fit, the quarter that was not asked
/// for for the longest time is dropped. Not safe for several threads.
template <class Key, class Value, class Hash = std::hash<Key>>
class RecentlyUsed {
  struct Entry {
    Value value;
    uint64_t last_use;
  };
  using Map = std::unordered_map<Key, Entry, Hash>;

 public:
  /// What was dropped, for callers to destroy when they no longer hold a lock.
  using Dropped = std::vector<typename Map::node_type>;

  explicit RecentlyUsed(size_t most) : most_(most) {}

  size_t size() const { return map_.size(); }

  /// Null for what is not there; else it is the most recently used one now. Valid until another is added.
  Value* find(const Key& key) {
    const auto it = map_.find(key);
    if (it == map_.end()) return nullptr;
    it->second.last_use = ++uses_;
    return &it->second.value;
  }
  /// In the place of what is there under this key.
  Dropped add(const Key& key, Value value) {
    Dropped dropped;
    if (map_.size() >= most_ && !map_.contains(key)) dropped = drop_quarter();
    map_.insert_or_assign(key, Entry{std::move(value), ++uses_});
    return dropped;
  }
  void erase(const Key& key) { map_.erase(key); }
  template <class Predicate>
  void erase_if(Predicate of_value) {
    std::erase_if(map_, [&](const auto& entry) { return of_value(entry.second.value); });
  }

 private:
  Dropped drop_quarter() {
    std::vector<typename Map::iterator> oldest;
    oldest.reserve(map_.size());
    for (auto it = map_.begin(); it != map_.end(); ++it) oldest.push_back(it);
    const size_t count = (oldest.size() + 3) / 4;
    const auto older = [](auto a, auto b) { return a->second.last_use < b->second.last_use; };
    std::nth_element(oldest.begin(), oldest.begin() + std::ptrdiff_t(count - 1), oldest.end(), older);
    Dropped dropped;
    dropped.reserve(count);
    for (size_t i = 0; i < count; ++i) dropped.push_back(map_.extract(oldest[i]));
    return dropped;
  }

  const size_t most_;
  Map map_;
  uint64_t uses_ = 0;
};

}  // namespace tinygrad
