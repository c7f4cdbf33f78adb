#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tinygrad::apps {

struct Colour {
  uint8_t r, g, b;
};

namespace colours {
inline constexpr Colour background{24, 26, 30}, plain{150, 155, 165}, faint{58, 62, 70}, white{235, 238, 242}, red{255, 64, 56},
    green{80, 210, 110};
}  // namespace colours

/// A true-colour picture, dark at first. What would be drawn outside of it is not drawn.
class Canvas {
 public:
  Canvas(int64_t width, int64_t height);

  void fill(int64_t x, int64_t y, int64_t width, int64_t height, Colour c);
  /// Two points thick.
  void line(double x0, double y0, double x1, double y1, Colour c);
  /// Letters (all are capitals), digits and some punctuation, `point` pixels a point; x and y are of the upper left corner.
  void text(int64_t x, int64_t y, std::string_view text, Colour c, int64_t point = 3);
  /// As the picture that the name ends in, .png. Throws IoError.
  void write(const std::string& path) const;

  static constexpr int64_t glyph_width = 3, glyph_height = 5;  ///< in points
  static int64_t text_width(std::string_view text, int64_t point = 3) { return static_cast<int64_t>(text.size()) * 4 * point - point; }

 private:
  int64_t width_, height_;
  std::vector<uint8_t> bytes_;
};

}  // namespace tinygrad::apps
