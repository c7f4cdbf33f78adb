#include "runtime/cuda/cuda.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/code_paths.h"
#include "runtime/cuda/driver.h"
#include "runtime/driver/device.h"

namespace tinygrad::runtime {
namespace {

/// "sm_90a": of newer ones with the instructions that are the architecture's own.
std::string native_arch(const driver::Gpu& gpu) {
  const int number = cuda::driver().capability(gpu.number());
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

Target target_for(const DeviceChoice& choice, const CodePath& code, const driver::Gpu& gpu) {
  const std::string native = native_arch(gpu);
  try {
    Target target = code.target(choice.arch.empty() ? native : choice.arch);
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
  const auto gpu = std::make_shared<const driver::Gpu>(cuda::driver(), choice.index);
  const CodePath& code = choice.renderer == "PTX" ? compiler::ptx_path : compiler::cuda_path;
  return std::make_unique<driver::GpuDevice>(choice, target_for(choice, code, *gpu), code, gpu);
}

}  // namespace tinygrad::runtime
