#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// On targets without vector arithmetic, values of several lanes become as many scalars, and what they load and store is taken one by one
/// (coalesce() joins it again). Vectors are left at tensor cores.
UOp split_vectors(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
