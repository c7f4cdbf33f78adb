#pragma once
#include <vector>

#include "base/function_ref.h"
#include "schedule/placement.h"
#include "shape/shape.h"

namespace tinygrad::schedule {

/// The ranges of REDUCEs in the kernels that are being made, and which REDUCEs share them.
class ReduceRanges {
 public:
  /// The ids of the ranges that a use stands in.
  using Around = FunctionRef<Loops::Ids()>;

  explicit ReduceRanges(Loops& loops) : loops_(loops) {}

  /// The ranges of a maximum and of the sums that can be carried with it, `max` (null: no such REDUCE), in one kernel, if another of them
  /// made them at this use, which stands in none of them: a loop in one of them need not depend on it.
  const UOps* joined(const UOp& reduce, const UOp* max, const Use& use, Around around);

  /// The ranges for a REDUCE over axes of `shape` at a use: those that are joined, else those that REDUCEs of one kernel share, at one
  /// place, of one `depth`, over axes of the same sizes.
  UOps at(const UOp& reduce, const UOp* max, int depth, const Shape& shape, const Use& use, Around around);

 private:
  UOp joined_key(const UOp& reduce, const UOp* max, const Use& use);
  UOps own(const UOp& reduce, int depth, const Shape& shape, const Use& use, Around around);

  Loops& loops_;
  NodeMap<UOps> own_, joined_;
  std::vector<UOp> held_;
};

}  // namespace tinygrad::schedule
