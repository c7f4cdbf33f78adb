#pragma once
#include <span>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The kernel with the loads that a STAGE opt names reading a tile that is filled once for each iteration of the loop `axis` (see
/// apply_opts.h). The STAGEs have ranges of their own.
UOp stage_operand(const UOp& sink, const UOp& axis, const Opt& opt, const Target& target);

/// The kernel with tiles for what a tensor core reads from memory of the group and none of the opts has staged: as much as it multiplies
/// in a step.
UOp stage_memory_operands(const UOp& sink, std::span<const Opt> opts, const Target& target);

}  // namespace tinygrad::codegen
