#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// On targets with cache hints, of a linear program: what stands behind the loop of a reduction and accesses arguments that the second
/// cache does not hold is PREFETCHed in front of the loop, and what is loaded there for what follows is loaded behind it, so that the
/// loop neither waits for it nor spills it.
UOp prefetch_results(const UOp& linear, const Target& target);

}  // namespace tinygrad::codegen
