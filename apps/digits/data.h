#pragma once
#include <string>
#include <string_view>

#include "common/image_set.h"

namespace tinygrad::apps {

/// The UCI digits in the order of their file (data/README.md). `path` empty: the file that comes with tg. Throws IoError and FormatError.
ImageSet load_digits(const std::string& path);

/// The digits of a CSV text: 64 pixels of 0 to 16 and a class a line. Throws FormatError, naming the line.
ImageSet parse_digits(std::string_view csv, const std::string& name);

}  // namespace tinygrad::apps
