#include "devices/devices.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include <tinygrad/context.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>

#include "common/json_line.h"

namespace tinygrad::apps {

namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

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
  return out;
}

std::string text_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
  return value.empty() ? "none" : fmt::format("{}", fmt::join(value.get<Names>(), " "));
}

}  // namespace

void list_devices(bool json) {
  const std::string preferred = default_name();
  const std::vector<DeviceStatus> all = available_devices();
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
  const Context chosen{{.dev = name}};
  const Json all = facts(Device::get(default_device()));
  if (json) return print_json(all);
  for (const auto& [key, value] : all.items()) fmt::print("{:<12} {}\n", key, text_of(value));
}

}  // namespace tinygrad::apps
