#pragma once
#include <map>
#include <shared_mutex>

#include <tinygrad/allocator.h>

#include "runtime/webgpu/gpu.h"

namespace tinygrad::runtime::webgpu {

/// Handles are addresses that nothing is at: numbers that say which buffer, and where in it.
class WebGpuAllocator final : public LruAllocator {
 public:
  explicit WebGpuAllocator(Gpu& gpu) : LruAllocator(gpu.name()), gpu_(gpu) {}
  ~WebGpuAllocator() override { empty_cache(); }

  Place place(const void* handle) const;

  void* offset(void* handle, size_t bytes) const override { return static_cast<std::byte*>(handle) + bytes; }
  std::byte* host_pointer(void*) const override { return nullptr; }
  void copy_in(void* handle, const std::byte* from, size_t bytes) override;
  void copy_in_read(void* handle, size_t bytes, const Reader& read) override;
  void copy_out(std::byte* to, void* handle, size_t bytes) override;
  void copy(void* to, void* from, size_t bytes) override;

 protected:
  void* system_allocate(size_t bytes, const BufferSpec& spec) override;
  void system_free(void* handle, size_t bytes, const BufferSpec& spec) noexcept override;

 private:
  struct Block {
    OwnedBuffer buffer;
    uint64_t bytes = 0;
  };

  Gpu& gpu_;
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Block> blocks_;  // by their first address
  uintptr_t next_ = uintptr_t{1} << 40;
};

}  // namespace tinygrad::runtime::webgpu
