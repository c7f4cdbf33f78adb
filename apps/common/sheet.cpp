#include "common/sheet.h"

#include <algorithm>

#include "common/canvas.h"

namespace tinygrad::apps {

namespace {

constexpr int64_t point = 3, glyph_width = Canvas::glyph_width * point, glyph_height = Canvas::glyph_height * point;

void draw_digit(Canvas& canvas, int64_t x, int64_t y, int32_t digit, Colour colour) {
  const auto character = static_cast<char>('0' + std::clamp(digit, 0, 9));
  canvas.text(x, y, {&character, 1}, colour, point);
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
      draw_digit(canvas, text_x, text_y, got, colours::plain);
    } else {
      canvas.fill(x - 3, y - 3, width + 6, height + 6, colours::red);
      draw_digit(canvas, text_x - glyph_width, text_y, got, colours::red);
      draw_digit(canvas, text_x + glyph_width, text_y, expected, colours::green);
    }
    draw_image(canvas, x, y, images, i, zoom);
  }
  canvas.write(path);
}

}  // namespace tinygrad::apps
