#pragma once
#include "uop/uop.h"

namespace tinygrad::schedule {

/// The list without loops: the calls of each iteration one after another, their variables bound to its number.
UOp unroll_loops(const UOp& linear);

}  // namespace tinygrad::schedule
