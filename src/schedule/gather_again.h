#pragma once
#include "uop/uop.h"

namespace tinygrad::schedule {

/// What transient COLLECTIVEs gather, shortly before it is read instead of as early as it could be, and again for what reads it later: no
/// more of it is kept than a few times the largest. What it is gathered of stays where it is anyway; where that is written over in between,
/// it is kept. Temporaries have slots from `first_temporary` on.
UOp gather_again(const UOp& linear, int32_t first_temporary);

}  // namespace tinygrad::schedule
