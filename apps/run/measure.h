#pragma once
/// How long calls of a model take, and what they need.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/program.h"

namespace tinygrad::apps {

struct Measured {
  std::vector<Result> results = {};    ///< of the first call
  double first_call_s = 0;             ///< with planning and compiling
  std::vector<double> steady_ms = {};  ///< of each later call, sorted
  uint64_t kernels = 0, flops = 0;     ///< of the last call
  double peak_mb = 0;
  bool is_of_process = false;  ///< what peak_mb is of; of a device with memory of its own it is that of its buffers

  std::optional<double> median_ms() const;
  /// Of a steady call.
  std::optional<double> gflops() const;
};

/// Calls once, and then `repeat` times behind two calls that capture; without a number up to 10 times in 2 seconds, once at least.
Measured measure(Program& program, const std::map<std::string, Tensor>& inputs, std::optional<int64_t> repeat, bool profile);

}  // namespace tinygrad::apps
