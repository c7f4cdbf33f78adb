#pragma once
/// Labelled pictures, as data sets have them.

#include <cstdint>
#include <vector>

namespace tinygrad::apps {

/// Grey pictures of one size with their classes.
struct ImageSet {
  int64_t height = 0, width = 0;
  int brightest = 255;               ///< the largest value a pixel may have
  std::vector<uint8_t> pixels = {};  ///< picture by picture, row by row
  std::vector<uint8_t> labels = {};

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  const uint8_t* image(int64_t i) const { return pixels.data() + i * height * width; }
  /// Adds the picture that `from` has at i.
  void append(const ImageSet& from, int64_t i) {
    pixels.insert(pixels.end(), from.image(i), from.image(i) + height * width);
    labels.push_back(from.labels[static_cast<size_t>(i)]);
  }
};

}  // namespace tinygrad::apps
