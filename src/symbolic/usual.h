#pragma once
#include "uop/uop.h"

namespace tinygrad::symbolic {

/// An integer expression in the middle of all loops and work-items that it depends on: the mean of what is linear in them.
UOp usual(const UOp& u);

}  // namespace tinygrad::symbolic
