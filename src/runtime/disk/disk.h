#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

std::string disk_unavailable();
/// DISK:PATH: a file. Its memory is the file from the beginning; a file that is not there is made.
std::unique_ptr<Device> open_disk(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
