#include <tinygrad/allocator.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/hash.h"
#include "base/options.h"
#include "base/spin_lock.h"

namespace tinygrad {
namespace {

/// What a device's memory in use and in the cache may add up to, as a multiple of the most that ever was in use. More than 1, for sizes
/// differ and are kept apart: a step that frees one size before it asks for the next finds both again.
constexpr size_t held_of_peak = 2;

}  // namespace

Allocator::~Allocator() = default;

void Allocator::copy_in_read(void* handle, size_t bytes, const Reader& read) {
  constexpr size_t most = size_t{16} << 20;
  std::vector<std::byte> piece(std::min(most, bytes));
  for (size_t at = 0; at < bytes; at += most) {
    const size_t n = std::min(most, bytes - at);
    read(piece.data(), at, n);
    copy_in(at ? offset(handle, at) : handle, piece.data(), n);
  }
}

void* Allocator::allocate(size_t bytes, const BufferSpec& spec) {
  void* handle = take_within_limit(bytes, spec);
  if (!handle) {
    // What is cached for other sizes may be what is missing.
    empty_cache();
    handle = take_within_limit(bytes, spec);
  }
  if (handle) return handle;
  const auto limit = static_cast<size_t>(current_options().memory_limit);
  throw OutOfMemoryError(fmt::format("{}: out of memory: {} bytes asked for, {} bytes in use{}; free tensors or work on less at a time",
                                     device_, bytes, bytes_in_use(), limit ? fmt::format(", MEMORY_LIMIT is {} bytes", limit) : ""));
}

/// Counts memory as in use; false beyond the limit. Before the memory is there, so that two threads cannot both pass the limit.
bool Allocator::count(size_t bytes) {
  const auto limit = static_cast<size_t>(current_options().memory_limit);
  const size_t most = limit ? limit : SIZE_MAX;
  size_t known = in_use_.load(std::memory_order_relaxed);
  do {
    if (bytes > most || known > most - bytes) return false;
  } while (!in_use_.compare_exchange_weak(known, known + bytes, std::memory_order_relaxed));
  return true;
}

void* Allocator::take_within_limit(size_t bytes, const BufferSpec& spec) {
  if (!count(bytes)) return nullptr;
  void* handle = nullptr;
  try {
    handle = take(bytes, spec);
  } catch (...) {
    in_use_ -= bytes;
    throw;
  }
  if (!handle) {
    in_use_ -= bytes;
    return nullptr;
  }
  // Only now: what nobody got must not make room in the cache.
  const size_t now = bytes_in_use();
  for (size_t peak = peak_bytes(); peak < now && !peak_.compare_exchange_weak(peak, now);) {}
  return handle;
}

void Allocator::deallocate(void* handle, size_t bytes, const BufferSpec& spec) noexcept {
  in_use_ -= bytes;
  give_back(handle, bytes, spec);
}

/// Handles by size and spec. Lists that became empty stay, so that the next free of their size costs no node.
struct LruAllocator::Cache {
  struct Key {
    size_t bytes;
    BufferSpec spec;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const { return hash_combine(k.bytes, (uint64_t(uintptr_t(k.spec.external_ptr)) << 1) + k.spec.host); }
  };
  struct List {
    std::vector<void*> handles;
    uint64_t used = 0;  // when something was last taken or given back
  };
  using Lists = std::unordered_map<Key, List, Hash>;

  /// Takes the lists out that were used least lately, until at most `most` bytes are left. Nothing has changed when there is no memory to.
  std::vector<Lists::node_type> shrink(size_t most) {
    std::vector<Lists::iterator> oldest;
    std::vector<Lists::node_type> out;
    oldest.reserve(lists.size());
    out.reserve(lists.size());
    for (auto it = lists.begin(); it != lists.end(); ++it) oldest.push_back(it);
    std::ranges::sort(oldest, {}, [](auto it) { return it->second.used; });
    for (auto it = oldest.begin(); it != oldest.end() && bytes > most; ++it) {
      bytes -= (*it)->first.bytes * (*it)->second.handles.size();
      out.push_back(lists.extract(*it));
    }
    return out;
  }

  mutable SpinLock lock;
  Lists lists;
  size_t bytes = 0;
  uint64_t now = 0;
};

LruAllocator::LruAllocator(std::string device) : Allocator(std::move(device)), cache_(std::make_unique<Cache>()) {}
LruAllocator::~LruAllocator() = default;

void* LruAllocator::take(size_t bytes, const BufferSpec& spec) {
  {
    const std::lock_guard lock(cache_->lock);
    if (const auto found = cache_->lists.find({bytes, spec}); found != cache_->lists.end() && !found->second.handles.empty()) {
      Cache::List& list = found->second;
      void* handle = list.handles.back();
      list.handles.pop_back();
      list.used = ++cache_->now;
      cache_->bytes -= bytes;
      return handle;
    }
    // The limit holds for what the device has given us, cached or not.
    const auto limit = static_cast<size_t>(current_options().memory_limit);
    if (limit && cache_->bytes != 0 && bytes_in_use() + cache_->bytes > limit) return nullptr;
  }
  return system_allocate(bytes, spec);
}

/// Keeps memory for later; false when it cannot.
bool LruAllocator::keep(void* handle, size_t bytes, const BufferSpec& spec) noexcept {
  if (!current_options().lru) return false;
  try {
    const std::lock_guard lock(cache_->lock);
    Cache::List& list = cache_->lists[{bytes, spec}];
    list.handles.push_back(handle);
    list.used = ++cache_->now;
    cache_->bytes += bytes;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void LruAllocator::give_back(void* handle, size_t bytes, const BufferSpec& spec) noexcept {
  if (!keep(handle, bytes, spec)) return system_free(handle, bytes, spec);
  std::vector<Cache::Lists::node_type> out;
  try {
    const std::lock_guard lock(cache_->lock);
    const size_t in_use = bytes_in_use(), most = held_of_peak * peak_bytes();
    if (in_use + cache_->bytes > most) out = cache_->shrink(most - std::min(most, in_use));
  } catch (const std::bad_alloc&) {  // the next one that comes back tries again
  }
  for (const auto& list : out) {
    for (void* old : list.mapped().handles) system_free(old, list.key().bytes, list.key().spec);
  }
}

void LruAllocator::empty_cache() noexcept {
  Cache::Lists taken;
  {
    const std::lock_guard lock(cache_->lock);
    taken.swap(cache_->lists);
    cache_->bytes = 0;
  }
  for (const auto& [key, list] : taken) {
    for (void* handle : list.handles) system_free(handle, key.bytes, key.spec);
  }
}

size_t LruAllocator::bytes_cached() const {
  const std::lock_guard lock(cache_->lock);
  return cache_->bytes;
}

}  // namespace tinygrad
