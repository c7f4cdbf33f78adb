#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Adds PREFETCHes to a linear program on targets with cache hints: where the innermost loop of a reduction strides through an argument
/// that is larger than half of the last cache, places some iterations ahead are fetched. The processor's own prefetcher stops at the end of
/// a page, and the work between such loads leaves too few of them in flight.
UOp prefetch_strides(const UOp& linear, const Target& target);

}  // namespace tinygrad::codegen
