#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

/// What is missing for OpenCL; empty if there is a device.
std::string cl_unavailable();
/// CL[:INDEX]: the devices of all OpenCL platforms on this machine, one after another.
std::unique_ptr<Device> open_cl(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
