#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

std::string disk_unavailable();
/// DISK:PATH: a file; DISK:shm:NAME: shared memory of the system. Its memory is the file from the beginning; a file that is not there is
/// made.
std::unique_ptr<Device> open_disk(const DeviceChoice& choice);
/// Whether two devices are one, or files that several names lead to.
bool is_same_file(Symbol a, Symbol b);

}  // namespace tinygrad::runtime
