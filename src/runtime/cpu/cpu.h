#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

/// Why kernels cannot run on this machine's processor; empty if they can.
std::string cpu_unavailable();
/// CPU[:LLVM|CLANG[:ARCH]]. Throws DeviceError for another renderer and for an architecture that this processor does not have.
std::unique_ptr<Device> open_cpu(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
