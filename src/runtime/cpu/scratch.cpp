#include "runtime/cpu/scratch.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "runtime/cpu/host_allocator.h"

namespace tinygrad::runtime {
namespace {

struct Area {
  void* memory = nullptr;
  size_t bytes = 0;

  constexpr Area() = default;
  ~Area() { free_host(memory); }
  void grow(size_t wanted) {
    free_host(std::exchange(memory, nullptr));
    bytes = 0;
    // Tiles are as large as a cache: a huge page holds them before a whole one is full.
    memory = allocate_host(wanted < huge_page_bytes / 16 ? wanted : std::max(wanted, huge_page_bytes));
    if (!memory) throw OutOfMemoryError(fmt::format("CPU: no memory for the {} bytes that a kernel needs in each thread", wanted));
    bytes = wanted;
  }
};

constinit thread_local Area area;

}  // namespace

void* thread_scratch(size_t bytes) {
  if (area.bytes < bytes) area.grow(bytes);
  return area.memory;
}

}  // namespace tinygrad::runtime
