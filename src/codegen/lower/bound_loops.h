#pragma once
#include <vector>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// The kernel with loops of reductions that leave out iterations which add nothing. Causal masks and triangles make the terms of a sum 0,
/// or of a maximum -inf, unless indices compare in some way; the loop then begins and ends where the iteration of the loops around it says.
/// A weight exp(-inf) counts as 0 even if it would be multiplied by an infinity, as in blocked attention elsewhere. A WEIGHT is a WHERE
/// afterwards.
UOp bound_loops(const UOp& sink);

/// A loop of reductions, and indices that are not negative where an iteration adds something to them.
struct BoundedLoop {
  UOp loop;
  UOps margins;
};
/// The loops that may become shorter. They do if that leaves out more than a tenth of their iterations.
std::vector<BoundedLoop> loops_to_bound(const UOp& sink);
inline constexpr double worth_bounding = 0.9;

/// Whether it would make a loop shorter.
bool may_bound_loops(const UOp& sink);

}  // namespace tinygrad::codegen
