#include "common/sheet.h"

#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <tinygrad/errors.h>

namespace tinygrad::apps {

namespace {

struct Colour {
  uint8_t r, g, b;
};
constexpr Colour background{24, 26, 30}, plain{150, 155, 165}, red{255, 64, 56}, green{80, 210, 110};

/// A true-colour picture.
class Canvas {
 public:
  Canvas(int64_t width, int64_t height) : width_(width), height_(height), bytes_(static_cast<size_t>(width * height * 3)) {
    fill(0, 0, width, height, background);
  }

  void fill(int64_t x, int64_t y, int64_t width, int64_t height, Colour c) {
    for (int64_t j = y; j < y + height; ++j)
      for (int64_t i = x; i < x + width; ++i) std::memcpy(&bytes_[static_cast<size_t>((j * width_ + i) * 3)], &c, 3);
  }

  void write(const std::string& path) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width_);
    image.height = static_cast<png_uint_32>(height_);
    image.format = PNG_FORMAT_RGB;
    if (!png_image_write_to_file(&image, path.c_str(), 0, bytes_.data(), 0, nullptr))
      throw IoError(fmt::format("{}: cannot write the picture: {}", path, image.message));
  }

 private:
  int64_t width_, height_;
  std::vector<uint8_t> bytes_;
};

/// Digits of 3x5 points, a row of three bits after the other.
constexpr uint16_t glyphs[10] = {0b111'101'101'101'111, 0b010'110'010'010'111, 0b111'001'111'100'111, 0b111'001'111'001'111,
                                 0b101'101'111'001'001, 0b111'100'111'001'111, 0b111'100'111'101'111, 0b111'001'010'010'010,
                                 0b111'101'111'101'111, 0b111'101'111'001'111};
constexpr int64_t point = 3, glyph_width = 3 * point, glyph_height = 5 * point;

void draw_digit(Canvas& canvas, int64_t x, int64_t y, int32_t digit, Colour colour) {
  const uint16_t glyph = glyphs[static_cast<size_t>(std::clamp(digit, 0, 9))];
  for (int64_t i = 0; i < 15; ++i)
    if (glyph >> (14 - i) & 1) canvas.fill(x + i % 3 * point, y + i / 3 * point, point, point, colour);
}

void draw_image(Canvas& canvas, int64_t x, int64_t y, const ImageSet& images, int64_t i, int64_t zoom) {
  for (int64_t p = 0; p < images.height * images.width; ++p) {
    const auto grey = static_cast<uint8_t>(std::min(255, images.image(i)[p] * 255 / images.brightest));
    canvas.fill(x + p % images.width * zoom, y + p / images.width * zoom, zoom, zoom, {grey, grey, grey});
  }
}

}  // namespace

void write_sheet(const std::string& path, const ImageSet& images, std::span<const int32_t> predicted) {
  constexpr int64_t most = 360, columns = 24, margin = 6;
  const int64_t count = std::min(images.size(), most), rows = (count + columns - 1) / columns;
  const int64_t zoom = std::max<int64_t>(1, (48 + images.height / 2) / images.height);
  const int64_t width = images.width * zoom, height = images.height * zoom;
  const int64_t step_x = width + 2 * margin, step_y = height + glyph_height + 3 * margin;
  Canvas canvas(columns * step_x, std::max<int64_t>(rows, 1) * step_y);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t x = i % columns * step_x + margin, y = i / columns * step_y + margin;
    const int32_t got = predicted[static_cast<size_t>(i)], expected = images.labels[static_cast<size_t>(i)];
    const int64_t text_x = x + (width - glyph_width) / 2, text_y = y + height + margin;
    if (got == expected) {
      draw_digit(canvas, text_x, text_y, got, plain);
    } else {
      canvas.fill(x - 3, y - 3, width + 6, height + 6, red);
      draw_digit(canvas, text_x - glyph_width, text_y, got, red);
      draw_digit(canvas, text_x + glyph_width, text_y, expected, green);
    }
    draw_image(canvas, x, y, images, i, zoom);
  }
  canvas.write(path);
}

}  // namespace tinygrad::apps
