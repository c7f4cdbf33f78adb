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

/// Copies between memory of two devices, or of one, by their queues, behind all that both were given so far: what is given to them from
/// now on runs behind it. False, and nothing has happened, where their queues have no such way.
bool copy_by_queues(Device& target, void* to, Device& source, void* from, size_t bytes);

}  // namespace tinygrad
