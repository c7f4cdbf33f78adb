#pragma once
#include <new>
#include <string>

#include <tinygrad/errors.h>

namespace tinygrad::engine {

[[noreturn]] inline void throw_out_of_host_memory() {
  throw OutOfMemoryError("the host is out of memory; free tensors or work on less at a time");
}

/// What `work` returns; that the host has no memory for it becomes an OutOfMemoryError, as with memory of devices.
template <class Work>
auto with_host_memory(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw_out_of_host_memory();
  }
}

/// The two texts; less of them where there is no memory.
inline std::string joined(const char* a, const char* b) noexcept {
  try {
    return std::string(a) + b;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace tinygrad::engine
