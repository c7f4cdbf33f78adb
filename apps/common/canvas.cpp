#include "common/canvas.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include <tinygrad/media.h>

namespace tinygrad::apps {

namespace {

struct Glyph {
  char character;
  uint16_t rows;  ///< 3x5 points, a row of three bits after the other
};
constexpr Glyph glyphs[] = {
    {'0', 0b111'101'101'101'111}, {'1', 0b010'110'010'010'111}, {'2', 0b111'001'111'100'111}, {'3', 0b111'001'111'001'111},
    {'4', 0b101'101'111'001'001}, {'5', 0b111'100'111'001'111}, {'6', 0b111'100'111'101'111}, {'7', 0b111'001'010'010'010},
    {'8', 0b111'101'111'101'111}, {'9', 0b111'101'111'001'111}, {'A', 0b010'101'111'101'101}, {'B', 0b110'101'110'101'110},
    {'C', 0b011'100'100'100'011}, {'D', 0b110'101'101'101'110}, {'E', 0b111'100'110'100'111}, {'F', 0b111'100'110'100'100},
    {'G', 0b011'100'101'101'011}, {'H', 0b101'101'111'101'101}, {'I', 0b111'010'010'010'111}, {'J', 0b001'001'001'101'010},
    {'K', 0b101'101'110'101'101}, {'L', 0b100'100'100'100'111}, {'M', 0b101'111'111'101'101}, {'N', 0b110'101'101'101'101},
    {'O', 0b010'101'101'101'010}, {'P', 0b110'101'110'100'100}, {'Q', 0b010'101'101'111'011}, {'R', 0b110'101'110'101'101},
    {'S', 0b011'100'010'001'110}, {'T', 0b111'010'010'010'010}, {'U', 0b101'101'101'101'111}, {'V', 0b101'101'101'101'010},
    {'W', 0b101'101'111'111'101}, {'X', 0b101'101'010'101'101}, {'Y', 0b101'101'010'010'010}, {'Z', 0b111'001'010'100'111},
    {'/', 0b001'001'010'100'100}, {'.', 0b000'000'000'000'010}, {',', 0b000'000'000'010'100}, {'%', 0b101'001'010'100'101},
    {'-', 0b000'000'111'000'000}, {'_', 0b000'000'000'000'111}, {':', 0b000'010'000'010'000}, {'+', 0b000'010'111'010'000},
};

}  // namespace

Canvas::Canvas(int64_t width, int64_t height) : width_(width), height_(height), bytes_(static_cast<size_t>(width * height * 3)) {
  fill(0, 0, width, height, colours::background);
}

void Canvas::fill(int64_t x, int64_t y, int64_t width, int64_t height, Colour c) {
  const int64_t right = std::min(x + width, width_), bottom = std::min(y + height, height_);
  for (int64_t j = std::max<int64_t>(y, 0); j < bottom; ++j)
    for (int64_t i = std::max<int64_t>(x, 0); i < right; ++i) std::memcpy(&bytes_[static_cast<size_t>((j * width_ + i) * 3)], &c, 3);
}

void Canvas::line(double x0, double y0, double x1, double y1, Colour c) {
  const double steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1.0});
  for (double s = 0; s <= steps; ++s)
    fill(std::lround(x0 + (x1 - x0) * s / steps) - 1, std::lround(y0 + (y1 - y0) * s / steps) - 1, 2, 2, c);
}

void Canvas::text(int64_t x, int64_t y, std::string_view text, Colour c, int64_t point) {
  for (const char character : text) {
    const auto capital = static_cast<char>(std::toupper(static_cast<unsigned char>(character)));
    const auto* glyph = std::ranges::find(glyphs, capital, &Glyph::character);
    for (int64_t i = 0; i < 15 && glyph != std::end(glyphs); ++i)
      if (glyph->rows >> (14 - i) & 1) fill(x + i % 3 * point, y + i / 3 * point, point, point, c);
    x += 4 * point;
  }
}

void Canvas::write(const std::string& path) const {
  media::save_image(Tensor(std::as_bytes(std::span(bytes_)), DType::uint8, {height_, width_, 3}, {.device = "CPU"}), path);
}

}  // namespace tinygrad::apps
