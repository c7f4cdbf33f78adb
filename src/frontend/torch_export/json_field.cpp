#include "frontend/torch_export/json_field.h"

#include <cmath>

namespace tinygrad::torch_export {

double Field::number() const {
  if (value_->is_string()) {
    const std::string word = text();
    if (word == "Infinity") return INFINITY;
    if (word == "-Infinity") return -INFINITY;
    if (word == "NaN") return NAN;
  }
  expect(value_->is_number(), "a number");
  return value_->get<double>();
}

void Field::allow(const std::set<std::string_view>& known) const {
  expect(value_->is_object(), "an object");
  for (const auto& [key, value] : value_->items())
    if (!known.contains(key) && !value.is_null() && !((value.is_array() || value.is_object()) && value.empty()) && value != Json(false))
      fail(fmt::format("the field '{}' is not known", key));
}

Json parse_json(std::string_view text, const std::string& name) {
  constexpr int most_levels = 200;
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char ch = text[i];
    if (in_text) {
      if (ch == '\\') ++i;
      if (ch == '"') in_text = false;
    } else if (ch == '"') {
      in_text = true;
    } else if (ch == '{' || ch == '[') {
      if (++depth > most_levels) throw FormatError(fmt::format("{}: more than {} levels at byte {}", name, most_levels, i));
    } else if (ch == '}' || ch == ']') {
      --depth;
    }
  }
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw FormatError(fmt::format("{}: no JSON: {}", name, error.what()));
  }
}

}  // namespace tinygrad::torch_export
