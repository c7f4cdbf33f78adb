// PNM (https://netpbm.sourceforge.net/doc/pnm.html): a header in text, and pixels as bytes or in text.
#include <fmt/core.h>

#include <cctype>

#include "frontend/media/picture.h"

namespace tinygrad::media {

namespace {

class Parser {
 public:
  explicit Parser(const Source& source) : source_(source) {}

  /// A decimal number behind blanks and comments.
  uint64_t number(std::string_view what, uint64_t most) {
    skip_blanks();
    uint64_t out = 0;
    const size_t begin = at_;
    for (; at_ < size() && std::isdigit(byte()) != 0; ++at_) {
      out = out * 10 + uint64_t(byte() - '0');
      if (out > most) break;
    }
    if (at_ == begin || out > most) source_.fail(fmt::format("PNM: {} at byte {}: expects a number of at most {}", what, begin, most));
    return out;
  }
  bool bit() {
    skip_blanks();
    if (at_ >= size() || (byte() != '0' && byte() != '1')) source_.fail(fmt::format("PNM: pixel at byte {}: expects 0 or 1", at_));
    return source_.data()[at_++] == '1';
  }
  /// The bytes behind the single blank that ends the header.
  const uint8_t* rest(uint64_t count) {
    ++at_;
    if (at_ > size() || count > size() - at_)
      source_.fail(fmt::format("PNM: pixels at byte {}: expects {} bytes, {} are left", at_, count, at_ > size() ? 0 : size() - at_));
    return source_.data() + at_;
  }
  /// Before anything of their size is allocated.
  void expect_bytes(uint64_t count) const {
    if (count > size() - at_) source_.fail(fmt::format("PNM: {} pixels, {} bytes are left", count, size() - at_));
  }

 private:
  size_t size() const { return source_.bytes.size(); }
  int byte() const { return source_.data()[at_]; }
  void skip_blanks() {
    while (at_ < size() && (std::isspace(byte()) != 0 || byte() == '#')) {
      if (byte() == '#')
        while (at_ < size() && byte() != '\n') ++at_;
      else
        ++at_;
    }
  }

  const Source& source_;
  size_t at_ = 2;
};

}  // namespace

Picture decode_pnm(const Source& source) {
  const int kind = source.data()[1] - '0';
  const bool is_text = kind <= 3, has_bits = kind == 1 || kind == 4;
  const int64_t channels = kind == 3 || kind == 6 ? 3 : 1;
  Parser parser(source);
  constexpr uint64_t most_side = uint64_t{1} << 28, most_value = 65535;  // so that 64 bits count the bytes
  const uint64_t width = parser.number("width", most_side), height = parser.number("height", most_side);
  const uint64_t top = has_bits ? 1 : parser.number("greatest value", most_value);
  if (top == 0) source.fail("PNM: the greatest value is 0");
  if (is_text) parser.expect_bytes(width * height);
  const auto scaled = [&](uint64_t value) {
    if (value > top) source.fail(fmt::format("PNM: the value {}, expects at most {}", value, top));
    return uint8_t(top == 255 ? value : (value * 255 + top / 2) / top);
  };
  const uint64_t wide = top > 255 ? 2 : 1, row_bytes = has_bits ? (width + 7) / 8 : width * uint64_t(channels) * wide;
  const uint8_t* bytes = is_text ? nullptr : parser.rest(row_bytes * height);
  Picture out = source.picture(height, width, channels);
  for (size_t i = 0; i < out.bytes.size(); ++i) {
    if (has_bits) {
      const size_t x = i % width, y = i / width;
      const bool is_black = is_text ? parser.bit() : (bytes[y * row_bytes + x / 8] >> (7 - x % 8) & 1) != 0;
      out.bytes[i] = is_black ? 0 : 255;
    } else {
      out.bytes[i] = scaled(is_text     ? parser.number("pixel", most_value)
                            : wide == 1 ? bytes[i]
                                        : uint64_t(bytes[2 * i]) << 8 | bytes[2 * i + 1]);
    }
  }
  return out;
}

void encode_pnm(const Picture& picture, const Sink& sink) {
  const std::string header = fmt::format("P{}\n{} {}\n255\n", picture.channels == 3 ? 6 : 5, picture.width, picture.height);
  sink(std::as_bytes(std::span(header)));
  sink(std::as_bytes(std::span(picture.bytes)));
}

}  // namespace tinygrad::media
