#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// On a CPU, the last iteration of an innermost loop is taken out of it and follows it, where masks are needed in that iteration alone: the
/// others load and store whole vectors. Loops that need masks elsewhere, as at the beginning of padded rows, stay as they are.
UOp peel_ends(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
