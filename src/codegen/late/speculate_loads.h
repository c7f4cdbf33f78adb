#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Turns gated LOADs of single elements into LOADs that are always made and a WHERE: where the gate is false, element 0 is read. Branches
/// in an inner loop cost more. Runs of neighbouring elements keep their gate, which makes a masked load of them, but for those that may
/// lie far outside of memory: where what all lanes have in common of the gate is false, they begin at element 0.
UOp speculate_loads(const UOp& sink);

}  // namespace tinygrad::codegen
