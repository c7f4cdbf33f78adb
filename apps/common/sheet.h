#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "common/image_set.h"

namespace tinygrad::apps {

/// Writes a PNG for people to look at: the first pictures (at most 360) with the predicted class below each. A mistake has a red frame,
/// the prediction in red and the true class in green beside it. Throws IoError.
void write_sheet(const std::string& path, const ImageSet& images, std::span<const int32_t> predicted);

}  // namespace tinygrad::apps
