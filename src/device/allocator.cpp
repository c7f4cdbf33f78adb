#include "device/allocator.h"

#include <algorithm>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "base/options.h"

namespace tinygrad {
namespace {

/// What a device's memory in use and in the cache may add up to, as a multiple of the most that ever was in use. More than 1, for sizes
/// differ and are kept apart: a step that frees one size before it asks for the next finds both again.
constexpr size_t held_of_peak = 2;

}  // namespace

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
  std::lock_guard lock(mutex_);
  if (handle)
    peak_ = std::max(peak_, in_use_);  // now: what nobody got must not make room in the cache
  else
    in_use_ -= bytes;
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

size_t Allocator::peak_bytes() const {
  std::lock_guard lock(mutex_);
  return peak_;
}

void* LruAllocator::take(size_t bytes, const BufferSpec& spec) {
  {
    std::lock_guard lock(mutex_);
    const auto found = cache_.find({bytes, spec});
    if (found != cache_.end() && !found->second.handles.empty()) {
      List& list = found->second;
      void* handle = list.handles.back();
      list.handles.pop_back();
      list.used = ++now_;
      cached_ -= bytes;
      return handle;
    }
    // The limit holds for what the device has given us, cached or not.
    const auto limit = static_cast<size_t>(current_options().memory_limit);
    if (limit && cached_ != 0 && bytes_in_use() + cached_ > limit) return nullptr;
  }
  return system_allocate(bytes, spec);
}

/// Keeps memory for later; false when it cannot.
bool LruAllocator::keep(void* handle, size_t bytes, const BufferSpec& spec) noexcept {
  if (!current_options().lru) return false;
  try {
    std::lock_guard lock(mutex_);
    List& list = cache_[{bytes, spec}];
    list.handles.push_back(handle);
    list.used = ++now_;
    cached_ += bytes;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

/// Takes the lists out that were used least lately, until at most `most` bytes are left. Nothing has changed when there is no memory to.
std::vector<LruAllocator::Lists::node_type> LruAllocator::shrink(size_t most) {
  std::vector<Lists::iterator> oldest;
  std::vector<Lists::node_type> out;
  oldest.reserve(cache_.size());
  out.reserve(cache_.size());
  for (auto it = cache_.begin(); it != cache_.end(); ++it) oldest.push_back(it);
  std::ranges::sort(oldest, {}, [](auto it) { return it->second.used; });
  for (auto it = oldest.begin(); it != oldest.end() && cached_ > most; ++it) {
    cached_ -= (*it)->first.first * (*it)->second.handles.size();
    out.push_back(cache_.extract(*it));
  }
  return out;
}

void LruAllocator::give_back(void* handle, size_t bytes, const BufferSpec& spec) noexcept {
  if (!keep(handle, bytes, spec)) return system_free(handle, bytes, spec);
  std::vector<Lists::node_type> out;
  try {
    const size_t in_use = bytes_in_use(), most = held_of_peak * peak_bytes();
    std::lock_guard lock(mutex_);
    if (in_use + cached_ > most) out = shrink(most - std::min(most, in_use));
  } catch (const std::bad_alloc&) {  // the next one that comes back tries again
  }
  for (const auto& list : out) {
    for (void* old : list.mapped().handles) system_free(old, list.key().first, list.key().second);
  }
}

void LruAllocator::empty_cache() noexcept {
  Lists taken;
  {
    std::lock_guard lock(mutex_);
    taken.swap(cache_);
    cached_ = 0;
  }
  for (const auto& [key, list] : taken) {
    for (void* handle : list.handles) system_free(handle, key.first, key.second);
  }
}

size_t LruAllocator::bytes_cached() const {
  std::lock_guard lock(mutex_);
  return cached_;
}

}  // namespace tinygrad
