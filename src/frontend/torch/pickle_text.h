#pragma once
/// Numbers and texts as pickles write them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tinygrad::frontend::torch {

/// Decimal digits where 64 bits are too few.
using Integer = std::variant<int64_t, std::string>;

/// A number in two's complement, little-endian; nothing for one of more than 1024 bytes.
std::optional<Integer> integer_of_bytes(std::string_view bytes);
/// "-12"; nothing for what is no integer, or one of more than 4096 digits.
std::optional<Integer> parse_integer(std::string_view text);
/// "1.5", "1e-3", "nan", "inf".
std::optional<double> parse_float(std::string_view text);
/// A text in quotes, with Python's escapes of bytes.
std::optional<std::string> unquoted(std::string_view text);
/// UTF-8 of a text in Latin-1 with \uXXXX and \UXXXXXXXX.
std::optional<std::string> raw_unicode_unescaped(std::string_view text);

/// Whether it is UTF-8; with the surrogates that Python's texts may have.
bool is_utf8(std::string_view text);

}  // namespace tinygrad::frontend::torch
