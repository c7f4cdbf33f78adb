#pragma once
/// The kinds of devices that are known, and the devices that are open. The functions of tinygrad/device.h ask here, once runtime/ has added
/// the library's own kinds.

#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace tinygrad {

/// Adds kinds of devices, in order of preference; those of a known name are left out.
void register_backends(std::span<const Backend> backends);
/// All of them, and which work.
std::vector<DeviceStatus> registered_devices();

/// Device::get(), Device::canonical() and Device::default_name() among what is registered.
Device& find_device(std::string_view name);
Symbol canonical_name(std::string_view name);
Symbol default_device_name();

DeviceStatistics statistics_of(Device& device);

}  // namespace tinygrad
