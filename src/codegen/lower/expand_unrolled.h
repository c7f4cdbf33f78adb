#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Replaces ranges of kind unroll by constants: a REDUCE combines one copy of its value for each value of such a range.
UOp expand_unrolled(const UOp& sink);

/// Replaces ranges of kind upcast by constants: an END gets one copy of its effect for each value of such a range.
UOp expand_upcast(const UOp& sink);

/// The same for one END.
UOp expand_end(const UOp& end);

}  // namespace tinygrad::codegen
