#pragma once
/// Memory of an OpenCL device. Its buffers have no addresses that the host could count with, and parts of them (sub-buffers) must be
/// aligned, so handles are addresses in a space of our own, which kernels and copies turn into a buffer and where to begin in it.

#include <map>
#include <shared_mutex>
#include <span>

#include <tinygrad/allocator.h>
#include "runtime/cl/cl_profile.h"

namespace tinygrad::runtime::cl {

/// A place in a buffer.
struct Place {
  Memory memory = nullptr;
  size_t offset = 0;  ///< bytes
};

class ClAllocator final : public LruAllocator {
 public:
  ClAllocator(std::string device, Context context, Queue queue, ClProfile& profile)
      : LruAllocator(device), name_(std::move(device)), context_(context), queue_(queue), profile_(profile) {}
  ~ClAllocator() override { empty_cache(); }

  /// Throws DeviceError for a handle that is in no buffer.
  Place place(const void* handle) const;

  void* offset(void* handle, size_t bytes) const override { return static_cast<std::byte*>(handle) + bytes; }
  std::byte* host_pointer(void*) const override { return nullptr; }
  void copy_in(void* handle, const std::byte* from, size_t bytes) override;
  void copy_in_read(void* handle, size_t bytes, const Reader& read) override;
  void copy_out(std::byte* to, void* handle, size_t bytes) override;
  void copy(void* to, void* from, size_t bytes) override;

 private:
  void* system_allocate(size_t bytes, const BufferSpec& spec) override;
  void system_free(void* handle, size_t bytes, const BufferSpec& spec) noexcept override;
  Memory create(size_t bytes) const;
  void read_mapped(const Place& to, size_t bytes, const std::function<void(std::byte*)>& read);
  void copy_places(const Place& to, const Place& from, size_t bytes) const;

  struct Block {
    Memory memory = nullptr;
    size_t bytes = 0;
  };
  const std::string name_;
  const Context context_;
  const Queue queue_;
  ClProfile& profile_;
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Block> blocks_;  // by address
  uintptr_t next_ = uintptr_t{1} << 40;
};

}  // namespace tinygrad::runtime::cl
