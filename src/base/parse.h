#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace tinygrad {

/// Reads all of `text` as a T; false, leaving `value` alone, when it is not one.
template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
bool parse_value(std::string_view text, T& value) {
  T parsed{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  value = parsed;
  return true;
}

/// 0, 1, true or false.
inline bool parse_value(std::string_view text, bool& value) {
  if (text != "0" && text != "1" && text != "true" && text != "false") return false;
  value = text == "1" || text == "true";
  return true;
}

inline bool parse_value(std::string_view text, std::string& value) {
  value = text;
  return true;
}

}  // namespace tinygrad
