#include "common/size_text.h"

#include <fmt/core.h>

#include <array>

namespace tinygrad::apps {

std::string size_text(int64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = double(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.4g} {}", value, units[unit]);
}

}  // namespace tinygrad::apps
