#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

/// Why no WebGPU device can be opened here, and what to install; empty if one can.
std::string webgpu_unavailable();
/// WEBGPU[:INDEX], through wgpu-native. Throws DeviceError.
std::unique_ptr<Device> open_webgpu(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
