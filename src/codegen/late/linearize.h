#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The instructions of a kernel as a LINEAR program (kind 1). Each stands in the innermost loop that it depends on, so what does not
/// change in a loop is computed before it. In a block, what AFTER and END order comes first, loads come before stores that might
/// overwrite them, and the rest is in the order of the graph's walk: the same graph gives the same list.
UOp linearize(const UOp& sink);

}  // namespace tinygrad::codegen
