#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bench/works.h"

namespace tinygrad::apps {

/// A work as a jitted function of its inputs, captured.
class Replay {
 public:
  explicit Replay(const BenchWork& work);
  /// Seconds of a call, averaged over `count` of them in a row.
  double seconds(int64_t count = 1) const;
  Tensors results() const { return call_(); }

 private:
  std::function<Tensors()> call_;
  std::string device_;
};

struct Timing {
  double seconds = 0;   ///< the median
  int repetitions = 0;  ///< that it is the median of
  int64_t calls = 1;    ///< in a row, that a repetition is the mean of: short ones are not timed alone
};

/// At least 3 repetitions, at least 15 if they fit into the budget, and at most 200.
Timing time_replay(const Replay& replay, double budget_s);

}  // namespace tinygrad::apps
