#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Adds WMMA_WAITs to a linear program with asynchronous products (is_asynchronous()), as late as they may stand: in front of what takes
/// their sums, and of what ends straight-line code. The products of straight-line code are one group, which is waited for together. A
/// product that adds to the sums of one under way, which nothing else takes, needs no wait.
UOp await_products(const UOp& linear);

}  // namespace tinygrad::codegen
