#include "common/json_line.h"

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tinygrad::apps {

namespace {

/// As dump(), with a space behind colons and commas.
std::string spaced(const nlohmann::ordered_json& value) {
  if (!value.is_object()) return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string text;
  for (const auto& [key, v] : value.items()) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", spaced(key), spaced(v));
  return "{" + text + "}";
}

}  // namespace

void print_json(const nlohmann::ordered_json& object) {
  fmt::print("{}\n", spaced(object));
  std::fflush(stdout);
}

}  // namespace tinygrad::apps
