#pragma once
#include <string>

#include "runtime/cuda/driver.h"

namespace tinygrad::runtime::hip {

/// AMD's runtime (hip_runtime_api.h), opened at run time, with its functions in the places of NVIDIA's: the library of the option
/// HIP_DRIVER_PATH, or libamdhip64; opened at the first use and kept. Throws DeviceError where it is missing, too old, or finds no device.
const cuda::Driver& driver();

/// "gfx942". Throws DeviceError.
std::string architecture(int device);

}  // namespace tinygrad::runtime::hip
