#pragma once
#include <memory>
#include <string>

#include "device/device.h"

namespace tinygrad::runtime {

/// The text is for people, and the program itself is what runs.
extern const CodePath interp_path;

/// Always empty: the interpreted device needs nothing of the machine.
std::string interp_unavailable();
/// DEV=INTERP: runs linear programs without a compiler, as a GPU would and with every access checked; for tests.
std::unique_ptr<Device> open_interp(const DeviceChoice& choice);

}  // namespace tinygrad::runtime
