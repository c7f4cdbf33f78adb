#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// What a loop over results computes again of the terms of a reduction, such as the exponentials of a softmax, is stored with the terms
/// to where the results will be, and read there, if the loops have the same steps and the second cache holds what is stored. Not on targets
/// that run loops over results as work-groups.
UOp keep_terms(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
