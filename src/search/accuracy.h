#pragma once
/// Whether a candidate computes what the heuristics' kernel does.

#include <cstddef>
#include <string>
#include <vector>

#include "search/trial_memory.h"

namespace tinygrad::search {

/// What is stored of integers must be the same. The error of floats is the largest difference from the exact value, in relation to that
/// value or to the root mean square of all in the buffer, whichever is greater; it may be `factor` times that of the heuristics' kernel
/// plus 4 ulp, or plus `least` where that is more.
class Accuracy {
 public:
  /// Takes the results that `memory` holds now as those of the heuristics' kernel, and those of `exact` as exact; null where there are
  /// none, or the heuristics' kernel is so far from them that its error says nothing: then its results are the exact ones, of which float64
  /// may differ by 64 ulp.
  Accuracy(const TrialMemory& memory, const TrialMemory* exact, double factor = 2, double least = 0);

  /// What is wrong with the results that the memory holds now; empty if nothing is.
  std::string complaint(const TrialMemory& memory) const;

 private:
  struct Expected {
    size_t slot = 0;
    std::vector<std::byte> bytes;
    std::vector<double> exact;
    double unit = 0;  ///< the root mean square
    double allowed = 0;
  };
  std::vector<Expected> expected_;
};

}  // namespace tinygrad::search
