#include "runtime/cuda/cuda.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/nvidia/assemble.h"
#include "compiler/nvidia/nvrtc.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/ptx/ptx.h"
#include "runtime/cuda/device.h"

namespace tinygrad::runtime {
namespace {

using cuda::Gpu;

class CudaDevice final : public cuda::DriverDevice {
 public:
  using DriverDevice::DriverDevice;

  std::string render(const UOp& linear, const KernelInfo& info) override {
    return is_ptx() ? renderer::render_ptx(target(), linear, info) : renderer::render_cuda(target(), linear, info);
  }
  std::string compile(const std::string& source) override {
    if (!is_ptx()) return compiler::compile_cuda(source, target().arch.str());
    // Without an assembler of ours the driver takes the text.
    return compiler::ptx_assembler_missing().empty() ? compiler::assemble_ptx(source, target().arch.str()) : source;
  }

 private:
  bool is_ptx() const { return target().renderer == Symbol("PTX"); }
};

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
  const auto gpu = std::make_shared<const Gpu>(cuda::driver(), choice.index);
  Target target = target_for(choice, *gpu);
  if (!choice.renderer.empty()) target.renderer = Symbol(choice.renderer);
  return std::make_unique<CudaDevice>(choice, target, gpu);
}

}  // namespace tinygrad::runtime
