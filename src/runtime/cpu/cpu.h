#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "device/device.h"

namespace tinygrad::runtime {

/// Why kernels cannot run on this machine's processor; empty if they can.
std::string cpu_unavailable();
/// Why kernels of a processor of another kind than the host's cannot run; empty if they can.
std::string emulated_cpu_missing(std::string_view arch);
/// CPU[:LLVM|CLANG[:ARCH]]. A processor of another kind than the host's is emulated. Throws DeviceError for another renderer, for an
/// architecture that this processor does not have, and where there is no emulator.
std::unique_ptr<Device> open_cpu(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
