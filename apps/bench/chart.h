#pragma once
#include <string>

#include "bench/roofline.h"

namespace tinygrad::apps {

/// What was reached, for the chart.
struct ChartPoint {
  std::string title;
  double flops = 0, bytes = 0, seconds = 0;
};

/// Writes a PNG: GFLOP/s over operations a byte, both logarithmic, with the machine's two limits and the point. Throws IoError, and
/// ValueError for a kernel that does no arithmetic.
void write_roofline(const std::string& path, const ChartPoint& point, const Roofline& limits);

}  // namespace tinygrad::apps
