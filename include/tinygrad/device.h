#pragma once
/// Which devices there are. A device is named `NAME[:INDEX]`, in any case: "CPU", "cuda:1".

#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/export.h>

namespace tinygrad {

/// One kind of device that the library knows.
struct DeviceStatus {
  std::string name;
  bool works = false;
  std::string reason;  ///< why it does not work
};

/// All kinds of devices, in order of preference, each followed by its other renderers as the option DEV names them ("CPU:CLANG").
TINYGRAD_EXPORT std::vector<DeviceStatus> available_devices();
/// The device that tensors are on when none is named: that of the option DEV, else the first that works. Throws DeviceError.
TINYGRAD_EXPORT std::string default_device();
/// The name under which a device is known: upper case, without ":0". Throws DeviceError for an unknown kind.
TINYGRAD_EXPORT std::string canonical_device(std::string_view name);
/// Waits until everything launched on a device has finished.
TINYGRAD_EXPORT void synchronize(std::string_view device);

}  // namespace tinygrad
