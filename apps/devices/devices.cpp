#include "devices/devices.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include <tinygrad/context.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>

#include "common/core_numbers.h"
#include "common/json_line.h"

namespace tinygrad::apps {

namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

bool names(std::string_view row, std::string_view target) {
  return target.starts_with(row) && (target.size() == row.size() || target[row.size()] == ':');
}

/// The row of the list that says most of the default device: "CPU:CLANG", not "CPU", of CPU:CLANG:znver4. Empty when none works.
std::string default_row(std::span<const DeviceStatus> all) {
  std::string best;
  try {
    const std::string target(Device::get(default_device()).target().name());
    for (const DeviceStatus& d : all)
      if (names(d.name, target) && d.name.size() > best.size()) best = d.name;
  } catch (const DeviceError&) {}
  return best;
}

std::string status_text(const DeviceStatus& d, const std::string& preferred) {
  if (!d.works) return "does not work: " + d.reason;
  return d.name == preferred ? "works (default)" : "works";
}

template <class Has>
Names dtypes_that(Has&& has) {
  Names out;
  for (const DType d : dtypes::all)
    if (has(d)) out.emplace_back(repr(d).substr(repr(d).find('.') + 1));
  return out;
}

Names core_names(const Target& target) {
  Names out;
  for (const TensorCore& c : target.tensor_cores) out.emplace_back(c.name.str());
  return out;
}

/// What code for a device may use.
Json facts(Device& device) {
  const Target& t = device.target();
  const auto has = [&](DType d) { return t.supports(d); };
  Json out{{"target", t.name()}, {"computes", t.computes()}};
  if (!t.computes()) return out;
  out.update({{"dtypes", dtypes_that(has)},
              {"converted", dtypes_that([&](DType d) { return t.converts(d); })},
              {"emulated", dtypes_that([&](DType d) { return !has(d) && !t.converts(d) && d != DType::float64; })},
              {"missing", dtypes_that([&](DType d) { return !has(d) && d == DType::float64; })},
              {"vector_bits", t.vector_bits},
              {"threads", t.has_threads},
              {"group_items", t.has_groups ? t.max_group_items : 0},
              {"group_memory", t.has_groups ? t.group_memory_bytes : 0},
              {"tensor_cores", core_names(t)},
              {"images", t.max_image_width > 0},
              {"arguments", t.max_buffers},
              {"graphs", device.has_graphs()},
              {"asynchronous", device.is_async()}});
  if (t.has_threads) out["core"] = core_json(t.core);
  return out;
}

std::string text_of(const Json& value) {
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
  return value.empty() ? "none" : fmt::format("{}", fmt::join(value.get<Names>(), " "));
}

}  // namespace

void list_devices(bool json) {
  const std::vector<DeviceStatus> all = available_devices();
  const std::string preferred = default_row(all);
  size_t width = 10;
  for (const DeviceStatus& d : all) width = std::max(width, d.name.size());
  for (const DeviceStatus& d : all) {
    if (json)
      print_json({{"device", d.name}, {"works", d.works}, {"default", d.name == preferred}, {"reason", d.reason}});
    else
      fmt::print("{:<{}} {}\n", d.name, width, status_text(d, preferred));
  }
}

void describe_device(const std::string& name, bool json) {
  // A plain name has the renderer and the processor that DEV chooses for it, as a tensor's device has.
  const DeviceChoice choice = DeviceChoice::parse(name);
  const bool is_plain = choice.renderer.empty() && choice.path.empty() && choice.canonical() == default_device();
  std::optional<Context> chosen;
  if (!is_plain) chosen.emplace(ContextArgs{.dev = name});
  const Json all = facts(Device::get(default_device()));
  if (json) return print_json(all);
  for (const auto& [key, value] : all.items())
    if (!value.is_object()) fmt::print("{:<12} {}\n", key, text_of(value));
  if (!all.contains("core")) return;
  fmt::print("a core:\n");
  for (const auto& [key, value] : all["core"].items()) fmt::print("  {:<20} {}\n", key, text_of(value));
}

}  // namespace tinygrad::apps
