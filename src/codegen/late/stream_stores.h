#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// On targets with cache hints: STOREs of whole vectors to an argument that is larger than half of the last cache, and that the kernel does
/// not load, go past the caches (IndexArg::streams). So lines are not read before they are written, and evict nothing. A part of a line is
/// written by itself unless the rest follows at once: around reductions only whole lines go so.
UOp stream_stores(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
