#include "device/allocator.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/options.h"

namespace tinygrad {

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

void* Allocator::take_within_limit(size_t bytes, const BufferSpec& spec) {
  const auto limit = static_cast<size_t>(current_options().memory_limit);
  {
    std::lock_guard lock(mutex_);
    if (bytes > SIZE_MAX - in_use_ || (limit && in_use_ + bytes > limit)) return nullptr;
    in_use_ += bytes;  // before the memory is there, so that two threads cannot both pass the limit
  }
  void* handle = take(bytes, spec);
  if (!handle) {
    std::lock_guard lock(mutex_);
    in_use_ -= bytes;
  }
  return handle;
}

void Allocator::deallocate(void* handle, size_t bytes, const BufferSpec& spec) noexcept {
  {
    std::lock_guard lock(mutex_);
    in_use_ -= bytes;
  }
  give_back(handle, bytes, spec);
}

size_t Allocator::bytes_in_use() const {
  std::lock_guard lock(mutex_);
  return in_use_;
}

void* LruAllocator::take(size_t bytes, const BufferSpec& spec) {
  {
    std::lock_guard lock(mutex_);
    const auto found = cache_.find({bytes, spec});
    if (found != cache_.end()) {
      void* handle = found->second.back();
      found->second.pop_back();
      if (found->second.empty()) cache_.erase(found);
      cached_ -= bytes;
      return handle;
    }
    // The limit holds for what the device has given us, cached or not.
    const auto limit = static_cast<size_t>(current_options().memory_limit);
    if (limit && cached_ != 0 && bytes_in_use() + cached_ > limit) return nullptr;
  }
  return system_allocate(bytes, spec);
}

void LruAllocator::give_back(void* handle, size_t bytes, const BufferSpec& spec) noexcept {
  if (current_options().lru) {
    try {
      std::lock_guard lock(mutex_);
      cache_[{bytes, spec}].push_back(handle);
      cached_ += bytes;
      return;
    } catch (const std::bad_alloc&) {  // then the system gets it back
    }
  }
  system_free(handle, bytes, spec);
}

void LruAllocator::empty_cache() noexcept {
  std::map<Key, std::vector<void*>> taken;
  {
    std::lock_guard lock(mutex_);
    taken.swap(cache_);
    cached_ = 0;
  }
  for (const auto& [key, handles] : taken) {
    for (void* handle : handles) system_free(handle, key.first, key.second);
  }
}

size_t LruAllocator::bytes_cached() const {
  std::lock_guard lock(mutex_);
  return cached_;
}

}  // namespace tinygrad
