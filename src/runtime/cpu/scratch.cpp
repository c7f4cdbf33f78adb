#include "runtime/cpu/scratch.h"

#include <algorithm>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "runtime/cpu/host_allocator.h"

namespace tinygrad::runtime {
namespace {

/// It has no destructor: the destructors of a user's globals may launch kernels when this thread's own objects are gone.
struct Area {
  void* memory = nullptr;
  size_t bytes = 0;

  void release() {
    free_host(memory);
    *this = {};
  }
};

constinit thread_local Area area;

void release_at_exit() {
  struct AtExit {
    AtExit() = default;
    AtExit(const AtExit&) = delete;
    AtExit& operator=(const AtExit&) = delete;
    ~AtExit() { area.release(); }
  };
  static thread_local AtExit at_exit;
}

void grow(size_t wanted) {
  area.release();
  // Tiles are as large as a cache: a huge page holds them before a whole one is full.
  const size_t bytes = wanted < huge_page_bytes / 16 ? wanted : std::max(wanted, huge_page_bytes);
  area.memory = allocate_host(bytes);
  if (!area.memory) throw OutOfMemoryError(fmt::format("CPU: no memory for the {} bytes that a kernel needs in each thread", wanted));
  area.bytes = bytes;
  release_at_exit();
}

}  // namespace

void* thread_scratch(size_t bytes) {
  if (area.bytes < bytes) grow(bytes);
  return area.memory;
}

}  // namespace tinygrad::runtime
