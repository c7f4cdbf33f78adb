#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

std::string null_unavailable();
/// NULL[:RENDERER[:ARCH]]: the target and renderer of a CPU (LLVM, the default) or GPU (CUDA, PTX), but no memory, no compiler and launches
/// that do nothing. For measuring what happens before a kernel runs, and for rendering for a machine that is not there.
std::unique_ptr<Device> open_null(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
