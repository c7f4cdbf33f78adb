#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Moves loads of a linear program that stand in front of a reduction's loop and are used behind it to behind the loop, so that the loop
/// neither waits for them nor spills them. On targets with cache hints it moves loads of arguments that the second cache does not hold, and
/// puts a PREFETCH of their places in front of the loop; on others it moves loads if they would leave the loop too few registers.
UOp load_behind_loops(const UOp& linear, const Target& target);

}  // namespace tinygrad::codegen
