#pragma once
#include <nlohmann/json_fwd.hpp>

namespace tinygrad::apps {

/// Prints an object on standard output as one line of JSON, `{"key": value, ...}`, at once.
void print_json(const nlohmann::ordered_json& object);

}  // namespace tinygrad::apps
