#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Makes two loops of one that is only used divided: for r = n*outer + inner, r//n is `outer` and r%n is `inner`, and kernels need neither
/// division. What a condition says of a remainder that also depends on short reductions, as in the gradient of a strided window, is
/// settled by writing out those reductions and the inner loop. Works on a simplified kernel.
UOp split_divided(const UOp& sink);

}  // namespace tinygrad::codegen
