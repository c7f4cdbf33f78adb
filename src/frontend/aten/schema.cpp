// Schemas as PyTorch writes them: a name, and parameters with their types and defaults.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "frontend/aten/call.h"

namespace tinygrad::aten {

namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

[[noreturn]] void wrong(std::string_view what, std::string_view text) {
  throw InternalError(fmt::format("aten: a schema has {} '{}'", what, text));
}

template <class T>
T parsed(std::string_view text) {
  T out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size()) wrong("the default", text);
  return out;
}

Value default_of(std::string_view text) {
  if (text == "None") return {};
  if (text == "True") return true;
  if (text == "False") return false;
  if (text.front() == '[') {
    List list;
    std::string_view left = text.substr(1, text.size() - 2);
    while (!left.empty()) {
      const size_t comma = left.find(',');
      list.push_back(parsed<int64_t>(trimmed(left.substr(0, comma))));
      left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
    }
    return list;
  }
  if (text.front() == '"') return std::string(text.substr(1, text.size() - 2));
  if (text == "long") return DType::int64;
  if (text == "contiguous_format") return MemoryFormat::contiguous;
  if (text.find_first_of(".e") != std::string_view::npos) return parsed<double>(text);
  return parsed<int64_t>(text);
}

/// Where the next parameter ends: at a comma outside of brackets.
size_t end_of_parameter(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if (text[i] == ']' || text[i] == ')') --depth;
    if (text[i] == ',' && depth == 0) return i;
  }
  return text.size();
}

Parameter parameter_of(std::string_view text, bool keyword_only) {
  const size_t equals = text.find('=');
  const std::string_view declared = trimmed(text.substr(0, equals));
  const size_t space = declared.rfind(' ');
  if (space == std::string_view::npos) wrong("the parameter", text);
  Parameter out{.name = std::string(declared.substr(space + 1)), .type = std::string(declared.substr(0, space))};
  out.keyword_only = keyword_only;
  if (equals != std::string_view::npos) {
    out.required = false;
    out.default_value = default_of(trimmed(text.substr(equals + 1)));
  }
  return out;
}

}  // namespace

Schema parse_schema(std::string_view text) {
  const size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') wrong("the text", text);
  Schema out{.name = std::string(text.substr(0, open))};
  std::string_view left = text.substr(open + 1, text.size() - open - 2);
  bool keyword_only = false;
  while (!left.empty()) {
    const size_t end = end_of_parameter(left);
    const std::string_view one = trimmed(left.substr(0, end));
    if (one == "*")
      keyword_only = true;
    else
      out.parameters.push_back(parameter_of(one, keyword_only));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return out;
}

}  // namespace tinygrad::aten
