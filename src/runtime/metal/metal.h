#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

/// Why there is no Metal device; empty if there is one.
std::string metal_unavailable();
/// METAL[:INDEX]: a GPU of Apple's systems. Throws DeviceError.
std::unique_ptr<Device> open_metal(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
