#pragma once
#include <span>
#include <vector>

#include <tinygrad/device.h>

#include "kernel/kernel_info.h"
#include "target/target.h"

namespace tinygrad {

/// Adds backends to the registry, in order of preference; those of a known name are left out. runtime/ calls it.
void register_backends(std::span<const Backend> backends);
/// All of them, and which work.
std::vector<DeviceStatus> registered_devices();
DeviceStatistics statistics_of(Device& device);

}  // namespace tinygrad
