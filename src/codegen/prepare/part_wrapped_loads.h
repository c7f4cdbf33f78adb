#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// A load at n%c, where n//c is one of two neighbours, becomes a choice of two loads without the division if they step along a loop
/// element by element: vectors are loaded on both sides of the place where the index wraps around, as of a rolled row.
UOp part_wrapped_loads(const UOp& sink);

}  // namespace tinygrad::codegen
