#include <tinygrad/allocator.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/hash.h"
#include "base/options.h"
#include "base/spin_lock.h"

namespace tinygrad {

Allocator::~Allocator() = default;

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
  for (size_t peak = peak_bytes(); peak < known + bytes && !peak_.compare_exchange_weak(peak, known + bytes);) {}
  return true;
}

void* Allocator::take_within_limit(size_t bytes, const BufferSpec& spec) {
  if (!count(bytes)) return nullptr;
  try {
    if (void* handle = take(bytes, spec)) return handle;
  } catch (...) {
    in_use_ -= bytes;
    throw;
  }
  in_use_ -= bytes;
  return nullptr;
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
  using Lists = std::unordered_map<Key, std::vector<void*>, Hash>;

  mutable SpinLock lock;
  Lists lists;
  size_t bytes = 0;
};

LruAllocator::LruAllocator(std::string device) : Allocator(std::move(device)), cache_(std::make_unique<Cache>()) {}
LruAllocator::~LruAllocator() = default;

void* LruAllocator::take(size_t bytes, const BufferSpec& spec) {
  {
    const std::lock_guard lock(cache_->lock);
    if (const auto found = cache_->lists.find({bytes, spec}); found != cache_->lists.end() && !found->second.empty()) {
      void* handle = found->second.back();
      found->second.pop_back();
      cache_->bytes -= bytes;
      return handle;
    }
    // The limit holds for what the device has given us, cached or not.
    const auto limit = static_cast<size_t>(current_options().memory_limit);
    if (limit && cache_->bytes != 0 && bytes_in_use() + cache_->bytes > limit) return nullptr;
  }
  return system_allocate(bytes, spec);
}

void LruAllocator::give_back(void* handle, size_t bytes, const BufferSpec& spec) noexcept {
  if (current_options().lru) {
    try {
      const std::lock_guard lock(cache_->lock);
      cache_->lists[{bytes, spec}].push_back(handle);
      cache_->bytes += bytes;
      return;
    } catch (const std::bad_alloc&) {  // then the system gets it back
    }
  }
  system_free(handle, bytes, spec);
}

void LruAllocator::empty_cache() noexcept {
  Cache::Lists taken;
  {
    const std::lock_guard lock(cache_->lock);
    taken.swap(cache_->lists);
    cache_->bytes = 0;
  }
  for (const auto& [key, handles] : taken) {
    for (void* handle : handles) system_free(handle, key.bytes, key.spec);
  }
}

size_t LruAllocator::bytes_cached() const {
  const std::lock_guard lock(cache_->lock);
  return cache_->bytes;
}

}  // namespace tinygrad
