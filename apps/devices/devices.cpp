#include "devices/devices.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include <tinygrad/device.h>
#include <tinygrad/errors.h>

#include "common/json_line.h"

namespace tinygrad::apps {

namespace {

/// The default device's name, empty when none works.
std::string default_name() {
  try {
    return default_device();
  } catch (const DeviceError&) {
    return {};
  }
}

std::string status_text(const DeviceStatus& d, const std::string& preferred) {
  if (!d.works) return "does not work: " + d.reason;
  return d.name == preferred ? "works (default)" : "works";
}

}  // namespace

void list_devices(bool json) {
  const std::string preferred = default_name();
  for (const DeviceStatus& d : available_devices()) {
    if (json)
      print_json({{"device", d.name}, {"works", d.works}, {"default", d.name == preferred}, {"reason", d.reason}});
    else
      fmt::print("{:<10} {}\n", d.name, status_text(d, preferred));
  }
}

}  // namespace tinygrad::apps
