#pragma once
#include <cstring>

#include <tinygrad/allocator.h>

namespace tinygrad {

/// What allocators share whose handles are addresses that the host can use.
template <class Base>
class HostMemory : public Base {
 public:
  using Base::Base;

  bool uses_host_memory() const override { return true; }
  void* offset(void* handle, size_t bytes) const override { return static_cast<std::byte*>(handle) + bytes; }
  std::byte* host_pointer(void* handle) const override { return static_cast<std::byte*>(handle); }
  void copy_in(void* handle, const std::byte* from, size_t bytes) override { move(handle, from, bytes); }
  void copy_out(std::byte* to, void* handle, size_t bytes) override { move(to, handle, bytes); }
  void copy(void* to, void* from, size_t bytes) override { move(to, from, bytes); }

 private:
  static void move(void* to, const void* from, size_t bytes) {
    if (bytes != 0) std::memmove(to, from, bytes);
  }
};

}  // namespace tinygrad
