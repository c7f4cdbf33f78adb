#include "runtime/hip/hip.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/code_paths.h"
#include "runtime/driver/device.h"
#include "runtime/hip/driver.h"

namespace tinygrad::runtime {
namespace {

Target target_for(const DeviceChoice& choice) {
  const std::string native = hip::driver().architecture(choice.index);
  if (!choice.arch.empty() && choice.arch != native)
    throw DeviceError(fmt::format("{}: the device is {}; it cannot run code for {}", choice.canonical(), native, choice.arch));
  try {
    return compiler::hip_path.target(native);
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
  const auto gpu = std::make_shared<const driver::Gpu>(hip::driver(), choice.index);
  return std::make_unique<driver::GpuDevice>(choice, target_for(choice), compiler::hip_path, gpu);
}

}  // namespace tinygrad::runtime
