#pragma once
#include <cstring>

#include "device/allocator.h"

namespace tinygrad::runtime {

/// Host memory, aligned to 64 bytes; large blocks ask the system for huge pages.
class HostAllocator : public LruAllocator {
 public:
  using LruAllocator::LruAllocator;

  void* offset(void* handle, size_t bytes) const override { return static_cast<std::byte*>(handle) + bytes; }
  std::byte* host_pointer(void* handle) const override { return static_cast<std::byte*>(handle); }
  void copy_in(void* handle, const std::byte* from, size_t bytes) override { copy_bytes(handle, from, bytes); }
  void copy_out(std::byte* to, void* handle, size_t bytes) override { copy_bytes(to, handle, bytes); }
  void copy(void* to, void* from, size_t bytes) override { copy_bytes(to, from, bytes); }

 protected:
  void* system_allocate(size_t bytes, const BufferSpec& spec) override;
  void system_free(void* handle, size_t bytes, const BufferSpec& spec) noexcept override;

 private:
  static void copy_bytes(void* to, const void* from, size_t bytes) {
    if (bytes) std::memmove(to, from, bytes);
  }
};

}  // namespace tinygrad::runtime
