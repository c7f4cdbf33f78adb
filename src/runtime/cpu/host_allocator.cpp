#include "runtime/cpu/host_allocator.h"

#include <sys/mman.h>

#include <cstdlib>

namespace tinygrad::runtime {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

void* HostAllocator::system_allocate(size_t bytes, const BufferSpec&) {
  const size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kAlignment;
  if (bytes > SIZE_MAX - alignment) return nullptr;
  const size_t rounded = bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  // A hint: where huge pages are switched off nothing is lost.
  if (memory && alignment == kHugePage) ::madvise(memory, rounded, MADV_HUGEPAGE);
  return memory;
}

void HostAllocator::system_free(void* handle, size_t, const BufferSpec&) noexcept { std::free(handle); }

}  // namespace tinygrad::runtime
