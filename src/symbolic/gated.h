#pragma once
/// Index expressions that are used only where a condition holds.

#include "uop/uop.h"

namespace tinygrad::symbolic {

struct Gated {
  UOp index, valid;
};

/// Another index, equal to this one wherever `valid` holds, that costs less; and the condition without what its other parts imply. Both in
/// normal form. Where the condition does not hold the index may be anything.
Gated simplify_gated(const UOp& index, const UOp& valid);

}  // namespace tinygrad::symbolic
