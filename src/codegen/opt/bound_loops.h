#pragma once
#include <vector>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// The kernel with reductions that leave out what adds nothing to them. Where all terms of a sum are 0, or all that a maximum is of are
/// -inf, unless indices compare in some way, as in what causal masks and triangles leave, its loop begins and ends where the loops around
/// it say that they may. A weight exp(-inf) counts as 0 also if it would be multiplied by an infinity, as where attention is computed in
/// blocks elsewhere; a WEIGHT is a WHERE afterwards.
UOp bound_loops(const UOp& sink);

/// A loop of reductions, and indices that are not negative where an iteration adds something to them.
struct BoundedLoop {
  UOp loop;
  UOps margins;
};
/// Those that it may make shorter: it does if that leaves out more than a tenth of a loop.
std::vector<BoundedLoop> loops_to_bound(const UOp& sink);
inline constexpr double worth_bounding = 0.9;

/// Whether it would make a loop shorter.
bool may_bound_loops(const UOp& sink);

}  // namespace tinygrad::codegen
