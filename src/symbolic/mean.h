#pragma once
#include "uop/uop.h"

namespace tinygrad::symbolic {

/// An integer expression, such as the size of a loop, at the mean over the loops and work-items that it depends on: of all their iterations
/// where they are few, else of some that are spread evenly, and of the middle where their number or another part of the
/// expression is not known before launch. Of one that data decide it is the middle of what it can be.
UOp mean(const UOp& u);

}  // namespace tinygrad::symbolic
