#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

/// Why there is no HIP device; empty if there is one.
std::string hip_unavailable();
/// HIP[:INDEX]: a GPU of AMD through ROCm's runtime. Kernels are HIP C++ that clang compiles. Throws DeviceError.
std::unique_ptr<Device> open_hip(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
