#include "runtime/cuda/device.h"

#include <fmt/core.h>

#include "runtime/cuda/kernel.h"
#include "runtime/cuda/memory.h"

namespace tinygrad::runtime::cuda {

DriverDevice::DriverDevice(const DeviceChoice& choice, const Target& target, const CodePath& code, std::shared_ptr<const Gpu> gpu)
    : Device(choice.canonical(), target, std::make_unique<CudaAllocator>(choice.canonical(), gpu), code), gpu_(std::move(gpu)) {}

std::unique_ptr<Kernel> DriverDevice::load(const KernelInfo& info, const UOp&, const std::string& binary) {
  return std::make_unique<CudaKernel>(gpu_, target(), info, binary);
}

std::unique_ptr<tinygrad::Graph> DriverDevice::make_graph(std::span<const GraphLaunch> launches) {
  return cuda::make_graph(gpu_, launches);
}

bool DriverDevice::reaches(const DriverDevice& other) {
  const std::lock_guard lock(mutex_);
  if (reached_.contains(&other)) return true;
  const Driver& api = gpu_->api();
  int can = 0;
  api.check(api.can_access_peer(&can, gpu_->number(), other.gpu_->number()), "asking for peer access");
  if (!can) return false;
  gpu_->enter();
  const Result enabled = api.enable_peer(other.gpu_->context(), 0);
  if (enabled != kPeerAccessAlreadyEnabled) api.check(enabled, "enabling peer access");
  reached_.insert(&other);
  return true;
}

bool DriverDevice::copy_from_peer(void* to, Device& source, void* from, size_t bytes) {
  auto* other = dynamic_cast<DriverDevice*>(&source);
  if (!other || &other->gpu_->api() != &gpu_->api() || (other->gpu_->context() != gpu_->context() && !reaches(*other))) return false;
  const Driver& api = gpu_->api();
  other->gpu_->enter();
  const Moment written(*other->gpu_);
  written.record();
  gpu_->enter();
  const Moment read(*gpu_);
  api.check(api.stream_wait_event(gpu_->stream(), written.event(), 0), "waiting for a peer");
  const auto address = CudaAllocator::address;
  gpu_->timed(fmt::format("copy from {}", source.name().str()), "copy", [&] {
    api.check(api.copy_to_peer(address(to), gpu_->context(), address(from), other->gpu_->context(), bytes, gpu_->stream()),
              "copying from a peer");
  });
  // What is launched on the other one from now on may overwrite what is read here.
  read.record();
  other->gpu_->enter();
  api.check(api.stream_wait_event(other->gpu_->stream(), read.event(), 0), "waiting for a peer");
  return true;
}

}  // namespace tinygrad::runtime::cuda
