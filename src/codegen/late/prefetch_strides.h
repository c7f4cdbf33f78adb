#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Of a linear program, on targets with cache hints: what the innermost loop of a reduction loads far from where the iteration before did,
/// of an argument of more than half of the last cache, is PREFETCHed some iterations ahead. The processor does not foresee such loads (it
/// knows no pages but those it has seen), and work between them leaves too few of them in flight.
UOp prefetch_strides(const UOp& linear, const Target& target);

}  // namespace tinygrad::codegen
