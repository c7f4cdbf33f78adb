#pragma once
/// Pictures and sounds as models take them.

#include <optional>
#include <string>
#include <vector>

#include "run/program.h"

namespace tinygrad::apps {

struct PictureOptions {
  std::string fit = "crop";     ///< or "stretch"
  std::string layout = "auto";  ///< or "nchw", "nhwc"
  bool bgr = false;
  std::optional<double> scale = {};  ///< what a byte is multiplied by
  std::vector<double> mean = {}, std = {};
};

struct Prepared {
  Tensor tensor = {};
  std::string how = {};     ///< "cat.png, 640 x 480, its middle 480 x 480, resized to 224 x 224"
  std::string values = {};  ///< what was done to the values: "divided by 255"
};

bool is_picture(const std::string& path);
bool is_sound(const std::string& path);

/// A picture as the input `port`, whose sizes are -1 where the file leaves them open: it has then the picture's own. Throws ShapeError,
/// DTypeError and ValueError for an input that takes no picture.
Prepared prepare_picture(const std::string& path, const Port& port, const Sizes& sizes, const PictureOptions& options);
/// A sound as a vector, or as (1, frames) or (channels, frames).
Prepared prepare_sound(const std::string& path, const Port& port, const Sizes& sizes);

}  // namespace tinygrad::apps
