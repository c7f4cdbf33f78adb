#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

std::string npy_unavailable();
/// NPY: arrays of the host, mostly memory of somebody else (Tensor::from_blob).
std::unique_ptr<Device> open_npy(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
