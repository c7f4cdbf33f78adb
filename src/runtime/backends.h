#pragma once
#include <string_view>

#include "device/device.h"

namespace tinygrad::runtime {

/// Makes every backend of the library known to the registry; cheap after the first call.
void install_backends();
/// Device::get() with the backends installed: what everything below runtime/ uses.
Device& open_device(std::string_view name);
/// The name of the default device, with the backends installed.
Symbol default_device_name();

}  // namespace tinygrad::runtime
