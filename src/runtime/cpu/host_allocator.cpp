#include "runtime/cpu/host_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace tinygrad::runtime {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

void* allocate_host(size_t bytes) {
  if (bytes > SIZE_MAX - huge_page_bytes) return nullptr;
  const size_t rounded = std::max(bytes + kAlignment - 1, kAlignment) / kAlignment * kAlignment;
  void* memory = nullptr;
  if (::posix_memalign(&memory, bytes >= huge_page_bytes ? huge_page_bytes : kAlignment, rounded) != 0) return nullptr;
  // A hint: where huge pages are switched off nothing is lost. What is less than one stays in small pages, so that none is wasted.
  if (bytes >= huge_page_bytes) ::madvise(memory, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE);
  return memory;
}

void free_host(void* memory) noexcept { std::free(memory); }

void* HostAllocator::system_allocate(size_t bytes, const BufferSpec&) { return allocate_host(bytes); }

void HostAllocator::system_free(void* handle, size_t, const BufferSpec&) noexcept { free_host(handle); }

}  // namespace tinygrad::runtime
