#pragma once
/// The device PTXSIM: kernels are PTX, run by the machine of the tests. PTXSIM:PTX:sm_80 is one of that architecture.

#include <cstdlib>
#include <memory>

#include "device/device.h"
#include "device/host_memory.h"
#include "renderer/ptx/ptx.h"
#include "support/fake_cuda/ptx_machine.h"

namespace tinygrad::test {

class PtxKernel final : public Kernel {
 public:
  PtxKernel(const Target& target, const KernelInfo& info, const std::string& text)
      : info_(info), text_(text), given_bytes_(size_t(given_group_bytes(target, info))) {}

  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims, bool) override {
    std::vector<PtxBuffer> memory;
    std::vector<uint64_t> arguments;
    for (const KernelParam& p : info_.params) {
      auto* at = static_cast<std::byte*>(buffers[size_t(p.slot)]);
      memory.push_back({reinterpret_cast<uint64_t>(at), {at, size_t(p.size.evaluate(variables)) * itemsize(p.dtype)}});
      arguments.push_back(memory.back().address);
    }
    for (const int64_t v : variables) arguments.push_back(uint64_t(v));
    PtxMachine(text_).run(arguments, memory, dims, given_bytes_);
    return 0.0;
  }

 private:
  const KernelInfo info_;
  const std::string text_;
  const size_t given_bytes_;
};

class PtxAllocator final : public HostMemory<Allocator> {
 public:
  using HostMemory::HostMemory;

 protected:
  void* take(size_t bytes, const BufferSpec&) override { return std::aligned_alloc(64, (bytes + 64) / 64 * 64); }
  void give_back(void* handle, size_t, const BufferSpec&) noexcept override { std::free(handle); }
};

/// PTX that nothing assembles.
inline constexpr CodePath ptx{.renderer = "PTX", .render = renderer::render_ptx};

class PtxDevice final : public Device {
 public:
  PtxDevice(const std::string& name, const Target& target) : Device(name, target, std::make_unique<PtxAllocator>(name), ptx) {}
  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp&, const std::string& binary) override {
    return std::make_unique<PtxKernel>(target(), info, binary);
  }
};

inline void register_ptx_device() {
  static constexpr CodePath kPaths[] = {ptx};
  static constexpr Backend kBackend{.name = "PTXSIM",
                                    .may_be_default = false,
                                    .unavailable = [] { return std::string(); },
                                    .code_paths = kPaths,
                                    .open = [](const DeviceChoice& choice) -> std::unique_ptr<Device> {
                                      return std::make_unique<PtxDevice>(choice.canonical(),
                                                                         cuda_target(choice.arch.empty() ? "sm_90a" : choice.arch));
                                    }};
  register_backend(kBackend);
}

}  // namespace tinygrad::test
