#include "runtime/cuda/device.h"

#include "runtime/cuda/kernel.h"
#include "runtime/cuda/memory.h"

namespace tinygrad::runtime::cuda {

DriverDevice::DriverDevice(const DeviceChoice& choice, const Target& target, const CodePath& code, std::shared_ptr<const Gpu> gpu)
    : Device(choice.canonical(), target, std::make_unique<CudaAllocator>(choice.canonical(), gpu), code),
      gpu_(gpu),
      queue_(std::move(gpu)) {}

std::unique_ptr<Kernel> DriverDevice::load(const KernelInfo& info, const UOp&, const std::string& binary) {
  return std::make_unique<CudaKernel>(gpu_, target(), info, binary);
}

std::unique_ptr<tinygrad::Graph> DriverDevice::make_graph(std::span<const GraphLaunch> launches) {
  return cuda::make_graph(gpu_, launches);
}

}  // namespace tinygrad::runtime::cuda
