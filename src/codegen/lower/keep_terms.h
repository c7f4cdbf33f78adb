#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Terms of a reduction that a loop over results computes again, such as the exponentials of a softmax, are stored in the place of the
/// results and read from there. The two loops must have the same steps, and the second cache must hold the terms. Targets that run loops
/// over results as work-groups compute them again.
UOp keep_terms(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
