#pragma once
#include "device/host_memory.h"

namespace tinygrad::runtime {

/// Host memory, aligned to 64 bytes; large blocks ask the system for huge pages.
class HostAllocator : public HostMemory<LruAllocator> {
 public:
  using HostMemory::HostMemory;

 protected:
  void* system_allocate(size_t bytes, const BufferSpec& spec) override;
  void system_free(void* handle, size_t bytes, const BufferSpec& spec) noexcept override;
};

}  // namespace tinygrad::runtime
