#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

/// Why there is no CUDA device; empty if there is one.
std::string cuda_unavailable();
/// CUDA[:INDEX][:RENDERER[:ARCH]]: a GPU of NVIDIA through its driver. Kernels are CUDA C, or PTX of our own. Throws DeviceError.
std::unique_ptr<Device> open_cuda(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
