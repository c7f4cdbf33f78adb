#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Of a linear program: what is loaded in front of the loop of a reduction for what follows it is loaded behind it, so that the loop
/// neither waits for it nor spills it. On targets with cache hints that is what the second cache does not hold, and what stands behind the
/// loop and accesses such arguments is PREFETCHed in front of it; on others, more loads than leave the loop its registers.
UOp load_behind_loops(const UOp& linear, const Target& target);

}  // namespace tinygrad::codegen
