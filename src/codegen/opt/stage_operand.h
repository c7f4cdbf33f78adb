#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The kernel with the loads that a STAGE opt names reading a tile that is filled once for each iteration of the loop `axis` (see
/// apply_opts.h). The STAGEs have ranges of their own.
UOp stage_operand(const UOp& sink, const UOp& axis, const Opt& opt, const Target& target);

}  // namespace tinygrad::codegen
