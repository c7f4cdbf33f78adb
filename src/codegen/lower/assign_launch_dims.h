#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// On targets with work-groups: the loops over output elements become indices of the launch grid, axes of kind local and group the index in
/// the group. Dimension 0 is the innermost loop, dimension 2 all but the two innermost; a loop that may be too long for a dimension of the
/// target becomes two, and what does not fit at all stays a loop. If several work-items compute the same result, the first of them stores
/// it. Kernels of several loop nests run as one work-item. On other targets nothing changes.
UOp assign_launch_dims(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
