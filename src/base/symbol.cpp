#include <tinygrad/symbol.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include "base/hash.h"

namespace tinygrad {

/// A header in front of the characters, in one allocation.
struct Symbol::Entry {
  uint64_t hash;
  size_t size;

  std::string_view text() const { return {reinterpret_cast<const char*>(this + 1), size}; }
};

const Symbol::Entry* Symbol::intern(std::string_view text) {
  struct SeenHash {
    size_t operator()(std::string_view s) const noexcept { return hash_bytes(s.data(), s.size()); }
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string_view, const Entry*, SeenHash> entries;
  };
  // Never destroyed: static objects of the user may hold symbols until the last moment.
  static auto& shards = *new std::array<Shard, 16>;

  if (text.empty()) return nullptr;
  uint64_t hash = hash_bytes(text.data(), text.size());
  Shard& shard = shards[hash >> 60];
  std::lock_guard lock(shard.mutex);
  if (auto found = shard.entries.find(text); found != shard.entries.end()) return found->second;
  auto memory = std::make_unique_for_overwrite<std::byte[]>(sizeof(Entry) + text.size());
  auto* entry = new (memory.get()) Entry{hash, text.size()};
  std::memcpy(static_cast<void*>(entry + 1), text.data(), text.size());
  shard.entries.emplace(entry->text(), entry);
  memory.release();  // the table has it
  return entry;
}

Symbol::Symbol(std::string_view text) : entry_(intern(text)) {}

std::string_view Symbol::str() const noexcept { return entry_ ? entry_->text() : std::string_view(); }

uint64_t Symbol::hash() const noexcept { return entry_ ? entry_->hash : 0; }

}  // namespace tinygrad
