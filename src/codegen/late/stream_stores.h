#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// On targets with cache hints: STOREs of whole vectors to an argument of more than half of the last cache, from which the kernel does
/// not load, go past the caches (IndexArg::streams), so that lines are neither read before they are written nor drive out what is near.
UOp stream_stores(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
