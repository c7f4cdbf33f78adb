#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// On a CPU, the first iteration of an innermost loop and the last one or two are taken out of it, where masks are needed in these alone:
/// the others load and store whole vectors. So does the part of a chunk in front of where its masks begin. Loops that need masks elsewhere
/// stay as they are.
UOp peel_ends(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
