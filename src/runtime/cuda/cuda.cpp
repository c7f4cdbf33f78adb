#include "runtime/cuda/cuda.h"

#include <mutex>
#include <set>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/nvidia/assemble.h"
#include "renderer/ptx/ptx.h"
#include "runtime/cuda/kernel.h"
#include "runtime/cuda/memory.h"

namespace tinygrad::runtime {
namespace {

using cuda::Gpu;

class CudaDevice final : public Device {
 public:
  CudaDevice(const DeviceChoice& choice, const Target& target, const std::shared_ptr<const Gpu>& gpu)
      : Device(choice.canonical(), target, std::make_unique<cuda::CudaAllocator>(choice.canonical(), gpu)), gpu_(gpu) {}

  std::string render(const UOp& linear, const KernelInfo& info) override { return renderer::render_ptx(target(), linear, info); }
  std::string compile(const std::string& source) override { return compiler::assemble_ptx(source, target().arch.str()); }
  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& binary) override {
    return std::make_unique<cuda::CudaKernel>(gpu_, target(), info, binary);
  }

  bool is_async() const override { return true; }
  void synchronize() override { gpu_->wait(); }
  bool has_graphs() const override { return true; }
  std::unique_ptr<Graph> make_graph(std::span<const GraphLaunch> launches) override { return cuda::make_graph(gpu_, launches); }
  bool copy_from_peer(void* to, Device& source, void* from, size_t bytes) override;

 private:
  /// Whether the device can reach memory of the other one.
  bool reaches(const CudaDevice& other);

  const std::shared_ptr<const Gpu> gpu_;
  std::mutex mutex_;
  std::set<const CudaDevice*> reached_;
};

bool CudaDevice::reaches(const CudaDevice& other) {
  const std::lock_guard lock(mutex_);
  if (reached_.contains(&other)) return true;
  const cuda::Driver& api = gpu_->api();
  int can = 0;
  api.check(api.can_access_peer(&can, gpu_->number(), other.gpu_->number()), "asking for peer access");
  if (!can) return false;
  gpu_->enter();
  const cuda::Result enabled = api.enable_peer(other.gpu_->context(), 0);
  if (enabled != cuda::kPeerAccessAlreadyEnabled) api.check(enabled, "enabling peer access");
  reached_.insert(&other);
  return true;
}

bool CudaDevice::copy_from_peer(void* to, Device& source, void* from, size_t bytes) {
  auto* other = dynamic_cast<CudaDevice*>(&source);
  if (!other || &other->gpu_->api() != &gpu_->api() || (other->gpu_->context() != gpu_->context() && !reaches(*other))) return false;
  const cuda::Driver& api = gpu_->api();
  other->gpu_->enter();
  const cuda::Moment written(*other->gpu_);
  written.record();
  gpu_->enter();
  const cuda::Moment read(*gpu_);
  api.check(api.stream_wait_event(gpu_->stream(), written.event(), 0), "waiting for a peer");
  const auto address = cuda::CudaAllocator::address;
  api.check(api.copy_to_peer(address(to), gpu_->context(), address(from), other->gpu_->context(), bytes, gpu_->stream()),
            "copying from a peer");
  // What is launched on the other one from now on may overwrite what is read here.
  read.record();
  other->gpu_->enter();
  api.check(api.stream_wait_event(other->gpu_->stream(), read.event(), 0), "waiting for a peer");
  return true;
}

/// "sm_90a": of newer ones with the instructions that are the architecture's own.
std::string native_arch(const Gpu& gpu) {
  const int number = gpu.attribute(cuda::kComputeMajor) * 10 + gpu.attribute(cuda::kComputeMinor);
  return fmt::format("sm_{}{}", number, number >= 90 ? "a" : "");
}

/// Whether code for an architecture runs on a device of another: 'a' and 'f' stand for instructions that few have, and a cubin runs on what
/// is newer within its generation.
bool runs_on(const std::string& arch, const std::string& native) {
  const auto number = [](const std::string& name) { return std::stoi(name.substr(3)); };
  const int code = number(arch), device = number(native);
  const bool is_special = arch.ends_with('a') || arch.ends_with('f');
  return code / 10 == device / 10 && (is_special ? code == device : code <= device);
}

Target target_for(const DeviceChoice& choice, const Gpu& gpu) {
  const std::string native = native_arch(gpu);
  try {
    Target target = cuda_target(choice.arch.empty() ? native : choice.arch);
    if (!choice.arch.empty() && !runs_on(choice.arch, native))
      throw DeviceError(fmt::format("{}: the device is {}; it cannot run code for {}", choice.canonical(), native, choice.arch));
    return target;
  } catch (const ValueError& e) {
    throw DeviceError(e.what());
  }
}

}  // namespace

std::string cuda_unavailable() {
  try {
    cuda::driver();
    return {};
  } catch (const Error& e) {
    return e.what();
  }
}

std::unique_ptr<Device> open_cuda(const DeviceChoice& choice) {
  const auto gpu = std::make_shared<const Gpu>(choice.index);
  Target target = target_for(choice, *gpu);
  target.renderer = choice.renderer.empty() ? "PTX" : choice.renderer.c_str();
  return std::make_unique<CudaDevice>(choice, target, gpu);
}

}  // namespace tinygrad::runtime
