#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

/// Why kernels for a Hexagon cannot run here; empty if they can.
std::string dsp_unavailable();
/// DSP[:CLANG[:v66]]: a Hexagon, emulated by qemu-hexagon. Throws DeviceError for another renderer and for an architecture that the
/// emulator does not have.
std::unique_ptr<Device> open_dsp(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
