#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

std::string null_unavailable();
/// NULL[:LLVM[:ARCH]]: the target and renderer of a CPU, but no memory, no compiler and launches that do nothing. For measuring what
/// happens before a kernel runs.
std::unique_ptr<Device> open_null(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
