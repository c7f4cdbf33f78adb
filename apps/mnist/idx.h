#pragma once
/// IDX, the file format of MNIST: two zero bytes, an element type, the number of axes, a big-endian size for each, the elements.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/image_set.h"

namespace tinygrad::apps {

/// An array of bytes in a file's memory.
struct IdxView {
  std::vector<int64_t> shape;
  std::span<const uint8_t> elements;
};

/// Reads the header of an unsigned-byte IDX file. Throws FormatError, naming the file, unless the bytes are exactly what the header says.
IdxView parse_idx(std::string_view bytes, const std::string& name);

/// Pictures and their classes (0 to 9) from two IDX files in memory. Throws FormatError.
ImageSet parse_images(std::string_view images, const std::string& images_name, std::string_view labels, const std::string& labels_name);

}  // namespace tinygrad::apps
