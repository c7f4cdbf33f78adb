#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Index and data algebra; nodes remember that they were simplified, whichever step asks.
UOp simplify(const UOp& graph);

}  // namespace tinygrad::codegen
