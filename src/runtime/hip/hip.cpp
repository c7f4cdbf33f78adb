#include "runtime/hip/hip.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/clang/clang.h"
#include "renderer/cstyle/cstyle.h"
#include "runtime/cuda/device.h"
#include "runtime/hip/driver.h"

namespace tinygrad::runtime {
namespace {

class HipDevice final : public cuda::DriverDevice {
 public:
  using DriverDevice::DriverDevice;

  std::string render(const UOp& linear, const KernelInfo& info) override { return renderer::render_hip(target(), linear, info); }
  std::string compile(const std::string& source) override { return compiler::compile_hip(source, target()); }
};

Target target_for(const DeviceChoice& choice) {
  const std::string native = hip::architecture(choice.index);
  if (!choice.arch.empty() && choice.arch != native)
    throw DeviceError(fmt::format("{}: the device is {}; it cannot run code for {}", choice.canonical(), native, choice.arch));
  try {
    return amd_target(native);
  } catch (const ValueError& e) {
    throw DeviceError(e.what());
  }
}

}  // namespace

std::string hip_unavailable() {
  try {
    hip::driver();
    return {};
  } catch (const Error& e) {
    return e.what();
  }
}

std::unique_ptr<Device> open_hip(const DeviceChoice& choice) {
  const auto gpu = std::make_shared<const cuda::Gpu>(hip::driver(), choice.index);
  return std::make_unique<HipDevice>(choice, target_for(choice), gpu);
}

}  // namespace tinygrad::runtime
