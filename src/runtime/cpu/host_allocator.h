#pragma once
#include "device/host_memory.h"

namespace tinygrad::runtime {

inline constexpr size_t huge_page_bytes = size_t{2} << 20;

/// Host memory, aligned to 64 bytes; those of a huge page and more ask the system for huge pages. nullptr when there is none.
void* allocate_host(size_t bytes);
void free_host(void* memory) noexcept;

/// Buffers in such memory.
class HostAllocator : public HostMemory<LruAllocator> {
 public:
  using HostMemory::HostMemory;

 protected:
  void* system_allocate(size_t bytes, const BufferSpec& spec) override;
  void system_free(void* handle, size_t bytes, const BufferSpec& spec) noexcept override;
};

}  // namespace tinygrad::runtime
