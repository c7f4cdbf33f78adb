#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// On targets whose vectors are only loaded and stored: scalar LOADs of neighbouring elements become one, and so do the STOREs of a GROUP;
/// as wide as the target has, and aligned where it needs that. What an argument must be aligned to for its accesses is noted in its
/// ParamArg.
UOp coalesce(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
