#include "runtime/emulated/shared_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <new>

namespace tinygrad::runtime {
namespace {

constexpr size_t kPage = 4096;

size_t rounded(size_t size) {
  return std::max(size + SharedHeap::alignment - 1, SharedHeap::alignment) / SharedHeap::alignment * SharedHeap::alignment;
}

}  // namespace

// Vectors that are not aligned are read as two that are, which may begin before what is read and end behind it.
SharedHeap::SharedHeap() : file_(bytes), base_(file_.at(0, bytes).data()), free_{{mailbox_bytes, bytes - mailbox_bytes - alignment}} {}

void* SharedHeap::allocate(size_t size) {
  if (size > bytes) return nullptr;
  const size_t wanted = rounded(size);
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(free_, [&](const auto& block) { return block.second >= wanted; });
  if (found == free_.end()) return nullptr;
  const auto [at, length] = *found;
  if (length == wanted) {
    free_.erase(found);
  } else {
    auto node = free_.extract(found);  // the rest needs no memory of its own
    node.key() = at + wanted;
    node.mapped() = length - wanted;
    free_.insert(std::move(node));
  }
  return base_ + at;
}

void SharedHeap::free(void* memory, size_t size) noexcept {
  const size_t begin = static_cast<size_t>(static_cast<std::byte*>(memory) - base_), end = begin + rounded(size);
  // Whole pages go back to the system.
  const size_t first = (begin + kPage - 1) / kPage * kPage, last = end / kPage * kPage;
  if (first < last) ::madvise(base_ + first, last - first, MADV_REMOVE);
  const std::lock_guard lock(mutex_);
  try {
    auto block = free_.emplace(begin, end - begin).first;
    if (const auto next = std::next(block); next != free_.end() && next->first == end) {
      block->second += next->second;
      free_.erase(next);
    }
    if (block == free_.begin()) return;
    if (const auto before = std::prev(block); before->first + before->second == begin) {
      before->second += block->second;
      free_.erase(block);
    }
  } catch (const std::bad_alloc&) {  // then it is never used again
  }
}

bool SharedHeap::contains(const void* memory) const {
  const auto at = reinterpret_cast<uintptr_t>(memory), begin = reinterpret_cast<uintptr_t>(base_);
  return at >= begin && at - begin < bytes;
}

}  // namespace tinygrad::runtime
