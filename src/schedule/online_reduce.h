#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// A sum whose terms have the factor exp2(c * (x - m)), where m is the maximum of the same x over the same ranges, needs not wait for the
/// maximum: both are carried together, and what was summed is rescaled when the maximum grows (Milakov and Gimelshein, 2018). `values` are
/// those of one nest. Each such sum for which the cost model finds it cheaper becomes a general REDUCE of {maximum, sum}; factors that do
/// not change with the ranges leave it. REDUCEs inside a REDUCE over the same ranges, as those that were to be joined are, get ranges of
/// their own, from `next_range` on, which counts up.
void join_reduces(std::vector<UOp>& values, const Target& target, int32_t& next_range);

/// The first id that no range has of those that the values name.
int32_t next_range_of(std::span<const UOp> values);

/// For each node of a tensor graph (in walking order) the maximum that it can be joined with: itself for a maximum that has such sums, null
/// for others. This sees only how the graph looks; join_reduces decides. On a CPU, whose vectors are along rows of x, what has too few of
/// them is left out: of products with a matrix for each row, as the scores of one query, x is stored.
std::vector<const UOp*> joinable_reduces(const std::vector<UOp>& order, const TargetOf& target_of);

}  // namespace tinygrad::schedule
