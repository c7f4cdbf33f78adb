#pragma once
/// What languages have a word or an instruction for, found by its operations, for graphs have no op of it.

#include "uop/uop.h"

namespace tinygrad::renderer {

/// x, if `u` is x rounded to the nearest integer, ties to even, as ops::round() writes it; null if it is not.
UOp rounded_to_nearest(const UOp& u);
/// True if a float's operations bound it to what int32 holds. It may be NaN.
bool is_small(const UOp& u);

}  // namespace tinygrad::renderer
