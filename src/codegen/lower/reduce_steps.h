#pragma once
/// What a REDUCE does in each step of its loop.

#include <optional>
#include <span>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// Over stand-ins for what is carried and for the values that it takes: small, and the same node for every copy of a tile.
struct ReduceStep {
  UOps identities, values;
  UOps carried, taken;  ///< the stand-ins
  UOps next;
};
ReduceStep step_of(const UOp& reduce);

/// An accumulator that steps without looking at others, and where it is.
struct Accumulator {
  UOp identity;
  UOp next;     ///< over stand-ins, of which the first is what is carried
  UOps values;  ///< that it takes
  UOp place;
};
/// The step of a carried value that looks at no other one, without a place.
std::optional<Accumulator> stepped_alone(const ReduceStep& step, size_t number);

/// Adds those carried values that depend on one of the ranges, directly or through others.
void add_dependent(const ReduceStep& step, std::span<const UOp> ranges, std::vector<bool>& out);

/// sum + where(c, x, 0) as where(c, sum + x, sum): one masked instruction with what makes x. The sum is never -0.
UOp kept_where_nothing_is_added(const UOp& sum, const UOp& next);

}  // namespace tinygrad::codegen
