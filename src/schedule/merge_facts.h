#pragma once
/// What merging kernels must know of what they store.

#include <vector>

#include "uop/uop.h"

namespace tinygrad::schedule {

/// REDUCEs of a kernel that can be one loop: equally many below them, the same loops around them and the same sizes.
struct ReduceKey {
  int depth;
  UOps around, sizes;
  friend bool operator==(const ReduceKey&, const ReduceKey&) = default;
};
struct ReduceLoop {
  ReduceKey key;
  UOps ranges;
};

struct MergeFacts {
  std::vector<UOp> loads;  ///< INDEX nodes
  std::vector<ReduceLoop> reduces;
  bool streams = true;  ///< no REDUCE uses an element for several outputs, as a matrix product does
};

MergeFacts merge_facts(const UOp& value);

}  // namespace tinygrad::schedule
