#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <tinygrad/allocator.h>

#include "runtime/driver/gpu.h"

namespace tinygrad::runtime::driver {

/// Memory of a GPU. Handles are its addresses, those of pinned host memory (BufferSpec::host) too. Copies from and to other host memory go
/// through two pinned pieces, so that one is filled or emptied while the other travels.
class GpuAllocator final : public LruAllocator {
 public:
  GpuAllocator(std::string device, std::shared_ptr<const Gpu> gpu) : LruAllocator(std::move(device)), gpu_(std::move(gpu)) {}
  ~GpuAllocator() override;

  void* offset(void* handle, size_t bytes) const override { return static_cast<std::byte*>(handle) + bytes; }
  std::byte* host_pointer(void* handle) const override;
  void copy_in(void* handle, const std::byte* from, size_t bytes) override;
  void copy_in_read(void* handle, size_t bytes, const Reader& read) override;
  void copy_out(std::byte* to, void* handle, size_t bytes) override;
  void copy(void* to, void* from, size_t bytes) override;

  static DevicePointer address(const void* handle) { return reinterpret_cast<DevicePointer>(handle); }

 protected:
  void* system_allocate(size_t bytes, const BufferSpec& spec) override;
  void system_free(void* handle, size_t bytes, const BufferSpec& spec) noexcept override;

 private:
  /// Pinned memory and when it was last travelled from.
  struct Piece {
    std::byte* memory = nullptr;
    std::unique_ptr<Moment> free;
  };
  static constexpr size_t piece_bytes = size_t{4} << 20;
  void prepare_pieces();

  const std::shared_ptr<const Gpu> gpu_;
  mutable std::mutex mutex_;                      // of what follows
  std::map<const std::byte*, size_t> host_made_;  // pinned memory by its address
  std::mutex copying_;                            // of the pieces
  Piece pieces_[2];
};

}  // namespace tinygrad::runtime::driver
