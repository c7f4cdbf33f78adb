#include "runtime/webgpu/webgpu.h"

#include <algorithm>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/code_paths.h"
#include "runtime/webgpu/kernel.h"
#include "target/webgpu.h"

namespace tinygrad::runtime {
namespace {

using namespace webgpu;

Target target_of(const Gpu& gpu) {
  const Limits& l = gpu.limits();
  return webgpu_target({.invocations = std::min({l.group_invocations, l.group_size_x, l.group_size_y}),
                        .groups_per_dimension = l.groups_per_dimension,
                        .group_memory_bytes = l.group_memory,
                        .max_buffers = static_cast<int>(l.storage_buffers_per_stage),
                        .is_software = gpu.is_software(),
                        .has_float16 = gpu.has(Feature::shader_f16)});
}

class WebGpuDevice final : public Device {
 public:
  WebGpuDevice(const DeviceChoice& choice, std::unique_ptr<Gpu> gpu)
      : Device(choice.canonical(), target_of(*gpu), std::make_unique<WebGpuAllocator>(*gpu), compiler::wgsl_path), gpu_(std::move(gpu)) {}

  /// Drivers have no binaries that could be kept.
  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& source) override {
    return std::make_unique<WebGpuKernel>(*gpu_, static_cast<const WebGpuAllocator&>(allocator()), info, source);
  }
  bool is_async() const override { return true; }
  bool records_profile() const override { return gpu_->has_clock(); }
  void synchronize() override { gpu_->synchronize(); }

 private:
  const std::unique_ptr<Gpu> gpu_;
};

}  // namespace

std::string webgpu_unavailable() {
  try {
    if (!adapters().empty()) return {};
    return "no adapter: install a driver for Vulkan (Debian: mesa-vulkan-drivers, which also has one that runs on the processor)";
  } catch (const Error& e) {
    return e.what();
  }
}

std::unique_ptr<Device> open_webgpu(const DeviceChoice& choice) {
  if (const std::string why = webgpu_unavailable(); !why.empty()) throw DeviceError(fmt::format("{}: {}", choice.canonical(), why));
  if (static_cast<size_t>(choice.index) >= adapters().size())
    throw DeviceError(fmt::format("{}: this machine has {} WebGPU adapters", choice.canonical(), adapters().size()));
  return std::make_unique<WebGpuDevice>(choice, std::make_unique<Gpu>(choice.canonical(), adapters()[static_cast<size_t>(choice.index)]));
}

}  // namespace tinygrad::runtime
