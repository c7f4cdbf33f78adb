#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Long sums of floats add up a few terms at a time, whose sums are added with what rounding loses of each (Knuth's two-sum, TAOCP 4.2.2):
/// an error of the order of 1e-6 of the sum of the magnitudes however many terms there are. Sums of products whose factors are used again
/// and again, as a matrix product's, take larger blocks and become so when they are much longer, since each addition counts there. The
/// loops of other reductions over the same ranges are split alike, so that they stay one loop.
UOp block_sums(const UOp& sink);

}  // namespace tinygrad::codegen
