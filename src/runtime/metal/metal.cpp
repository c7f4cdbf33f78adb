#include "runtime/metal/metal.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/code_paths.h"
#include "device/host_memory.h"
#include "runtime/metal/kernel.h"

namespace tinygrad::runtime {
namespace {

using metal::Gpu;

/// The host reads and writes memory itself, once the device is done with it.
class MetalAllocator final : public HostMemory<LruAllocator> {
 public:
  MetalAllocator(std::string device, std::shared_ptr<Gpu> gpu) : HostMemory(std::move(device)), gpu_(std::move(gpu)) {}
  ~MetalAllocator() override { empty_cache(); }

  void copy_in(void* handle, const std::byte* from, size_t bytes) override {
    gpu_->wait();
    HostMemory::copy_in(handle, from, bytes);
  }
  void copy_out(std::byte* to, void* handle, size_t bytes) override {
    gpu_->wait();
    HostMemory::copy_out(to, handle, bytes);
  }
  void copy(void* to, void* from, size_t bytes) override {
    gpu_->wait();
    HostMemory::copy(to, from, bytes);
  }

 protected:
  void* system_allocate(size_t bytes, const BufferSpec& spec) override { return gpu_->allocate(bytes, spec.external_ptr); }
  void system_free(void* handle, size_t, const BufferSpec&) noexcept override { gpu_->free(handle); }

 private:
  const std::shared_ptr<Gpu> gpu_;
};

class MetalDevice final : public Device {
 public:
  MetalDevice(const DeviceChoice& choice, const std::shared_ptr<Gpu>& gpu)
      : Device(choice.canonical(), metal_target(), std::make_unique<MetalAllocator>(choice.canonical(), gpu), compiler::metal_path),
        gpu_(gpu) {}

  /// The system compiles, and keeps what it made.
  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& source) override {
    return std::make_unique<metal::MetalKernel>(gpu_, target(), info, source);
  }
  bool is_async() const override { return true; }
  bool records_profile() const override { return true; }
  void synchronize() override { gpu_->wait(); }

 private:
  const std::shared_ptr<Gpu> gpu_;
};

}  // namespace

std::string metal_unavailable() {
  try {
    return metal::all_devices().empty() ? "METAL: the system has no device" : "";
  } catch (const Error& e) {
    return fmt::format("METAL: needs macOS 14 or newer: {}", e.what());
  }
}

std::unique_ptr<Device> open_metal(const DeviceChoice& choice) {
  if (const std::string why = metal_unavailable(); !why.empty()) throw DeviceError(why);
  return std::make_unique<MetalDevice>(choice, std::make_shared<Gpu>(choice.index));
}

}  // namespace tinygrad::runtime
