#include "runtime/driver/device.h"

#include "runtime/driver/kernel.h"
#include "runtime/driver/memory.h"

namespace tinygrad::runtime::driver {

GpuDevice::GpuDevice(const DeviceChoice& choice, const Target& target, const CodePath& code, std::shared_ptr<const Gpu> gpu)
    : Device(choice.canonical(), target, std::make_unique<GpuAllocator>(choice.canonical(), gpu), code),
      gpu_(gpu),
      queue_(std::move(gpu)) {}

std::unique_ptr<Kernel> GpuDevice::load(const KernelInfo& info, const UOp&, const std::string& binary) {
  return std::make_unique<GpuKernel>(gpu_, target(), info, binary);
}

std::unique_ptr<tinygrad::Graph> GpuDevice::make_graph(std::span<const GraphLaunch> launches) { return driver::make_graph(gpu_, launches); }

}  // namespace tinygrad::runtime::driver
