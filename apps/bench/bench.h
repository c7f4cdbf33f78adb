#pragma once
#include <string>

#include "bench/cases.h"

namespace tinygrad::apps {

struct BenchOptions {
  CaseOptions what;
  double budget = 5;          ///< seconds that timing may take
  std::string roofline = {};  ///< where to draw the roofline; empty: nowhere
  bool json = false;
};

/// tg bench: a kernel's time, what that is of the machine's limits, how it was optimized, and its error.
/// Throws ValueError for a result that is wrong, after printing it.
void bench(const BenchOptions& options);

}  // namespace tinygrad::apps
