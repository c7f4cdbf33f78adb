#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// On targets without vector arithmetic, values of several lanes become as many scalars. Vectors are left where memory of the device or the
/// group is loaded and stored whole, in runs that are known to be aligned and that the target has, and at tensor cores.
UOp split_vectors(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
