#pragma once
#include <span>
#include <vector>

#include "schedule/loops.h"
#include "uop/node_map.h"

namespace tinygrad::schedule {

/// Writes REDUCEs of kernels, and recognizes what is less than a loop of its own: a sum that picks one element is that element (select.h),
/// and a sum of sums is one sum.
class ReduceWriter {
 public:
  /// New ranges are opened among `loops`.
  explicit ReduceWriter(Loops& loops) : loops_(loops) {}

  /// The REDUCE `u` of a tensor graph in a kernel over `ranges`, constants among them where an axis has one element; `x` is its source
  /// there.
  UOp written(int kernel, const UOp& u, std::span<const UOp> ranges, const UOp& x);

 private:
  UOp nested_sum(int kernel, const UOp& outer);

  Loops& loops_;
  NodeMap<UOps> own_ranges_;  ///< of nested sums, by the kernel and the ranges that they take the place of
  std::vector<UOp> held_;
};

/// True for a condition that no element of memory has a part in.
bool is_of_places_only(const UOp& condition);

}  // namespace tinygrad::schedule
