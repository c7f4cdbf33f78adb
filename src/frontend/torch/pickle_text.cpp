#include "frontend/torch/pickle_text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include <fmt/core.h>

namespace tinygrad::frontend::torch {

namespace {

/// The decimal digits of a number, given by digits of 32 bits, the lowest first.
std::string decimal(std::vector<uint32_t> words) {
  constexpr uint32_t chunk = 1'000'000'000;
  std::string out;
  while (!words.empty()) {
    uint64_t rest = 0;
    for (size_t i = words.size(); i-- > 0;) {
      rest = rest << 32 | words[i];
      words[i] = static_cast<uint32_t>(rest / chunk);
      rest %= chunk;
    }
    while (!words.empty() && words.back() == 0) words.pop_back();
    const std::string digits = words.empty() ? fmt::format("{}", rest) : fmt::format("{:09}", rest);
    out.insert(out.begin(), digits.begin(), digits.end());
  }
  return out;
}

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t leads[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(leads[more] | code >> (6 * more));
  for (int i = more; i-- > 0;) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

std::optional<uint32_t> hex(std::string_view text, size_t at, size_t digits) {
  if (text.size() - at < digits) return {};
  uint32_t out = 0;
  const char *begin = text.data() + at, *end = begin + digits;
  const auto [stop, error] = std::from_chars(begin, end, out, 16);
  if (error != std::errc{} || stop != end) return {};
  return out;
}

}  // namespace

std::optional<Integer> integer_of_bytes(std::string_view bytes) {
  constexpr size_t most_bytes = 1024;
  if (bytes.empty()) return int64_t{0};
  if (bytes.size() > most_bytes) return {};
  const bool is_negative = (bytes.back() & 0x80) != 0;
  if (bytes.size() <= sizeof(int64_t)) {
    int64_t out = is_negative ? -1 : 0;
    std::memcpy(&out, bytes.data(), bytes.size());
    return out;
  }
  // The absolute value: all bits turned around, and one added.
  std::vector<uint32_t> words((bytes.size() + 3) / 4, is_negative ? UINT32_MAX : 0);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  uint64_t carry = 1;
  for (uint32_t& word : words) {
    if (!is_negative) break;
    carry += static_cast<uint32_t>(~word);
    word = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  return parse_integer((is_negative ? "-" : "") + decimal(std::move(words)));
}

std::optional<Integer> parse_integer(std::string_view text) {
  constexpr size_t most_digits = 4096;
  int64_t small = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), small);
  if (error == std::errc{} && end == text.data() + text.size()) return small;
  if (error != std::errc::result_out_of_range || end != text.data() + text.size() || text.size() > most_digits) return {};
  return std::string(text);
}

std::optional<double> parse_float(std::string_view text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return out;
}

std::optional<std::string> unquoted(std::string_view text) {
  if (text.size() < 2 || (text[0] != '\'' && text[0] != '"') || text.back() != text[0]) return {};
  const std::string_view inside = text.substr(1, text.size() - 2);
  constexpr std::string_view escapes = "\\'\"abfnrtv", meanings = "\\'\"\a\b\f\n\r\t\v";
  std::string out;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      out += inside[i];
      continue;
    }
    if (++i == inside.size()) return {};
    if (const size_t known = escapes.find(inside[i]); known != std::string_view::npos) {
      out += meanings[known];
      continue;
    }
    const std::optional<uint32_t> byte = inside[i] == 'x' ? hex(inside, i + 1, 2) : std::nullopt;
    if (!byte) return {};
    out += static_cast<char>(*byte);
    i += 2;
  }
  return out;
}

std::optional<std::string> raw_unicode_unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char kind = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : ' ';
    if (kind != 'u' && kind != 'U') {
      append_utf8(out, static_cast<unsigned char>(text[i]));
      continue;
    }
    const size_t digits = kind == 'u' ? 4 : 8;
    const std::optional<uint32_t> code = hex(text, i + 2, digits);
    if (!code || *code > 0x10FFFF) return {};
    append_utf8(out, *code);
    i += 1 + digits;
  }
  return out;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    if (first < 0x80) continue;
    const size_t more = first >= 0xC2 && first < 0xE0 ? 1 : first >= 0xE0 && first < 0xF0 ? 2 : first >= 0xF0 && first < 0xF5 ? 3 : 0;
    if (more == 0 || text.size() - i < more) return false;
    const auto second = static_cast<unsigned char>(text[i]);
    // Longer forms than needed, and what is above the last code.
    if ((first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90)) return false;
    for (size_t k = 0; k < more; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    i += more;
  }
  return true;
}

}  // namespace tinygrad::frontend::torch
