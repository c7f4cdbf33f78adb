// tg devices: which backends there are, which work here, and why the others don't.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include <tinygrad/device.h>
#include <tinygrad/errors.h>

#include "commands.h"

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

void list_devices(bool json) {
  const std::string preferred = default_name();
  for (const DeviceStatus& d : available_devices()) {
    if (json)
      fmt::print(
          "{}\n",
          nlohmann::ordered_json{{"device", d.name}, {"works", d.works}, {"default", d.name == preferred}, {"reason", d.reason}}.dump());
    else
      fmt::print("{:<10} {}\n", d.name, status_text(d, preferred));
  }
}

}  // namespace

void add_devices(CLI::App& app) {
  CLI::App* command = app.add_subcommand("devices", "List the backends, which of them work here, and why the others don't");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON object a line: device, works, default, reason");
  command->callback([json] { list_devices(*json); });
}

}  // namespace tinygrad::apps
