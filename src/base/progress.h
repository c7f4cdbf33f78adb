#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tinygrad::detail {

/// What a progress bar shows.
struct ProgressView {
  std::string_view description = {}, unit = {}, postfix = {};
  int64_t done = 0;
  int64_t total = -1;  // unknown
  double seconds = 0;
};

/// One line of at most `columns` characters (more when the texts alone need more): the bar takes what the rest leaves.
std::string progress_line(const ProgressView& view, int columns);

}  // namespace tinygrad::detail
