#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Replaces ranges of kind upcast and unroll by constants: an END gets one copy of its effect for each value of an upcast range, a
/// REDUCE combines one copy of its value for each value of an unroll range. No such range is left.
UOp expand_unrolled(const UOp& sink);

/// The same for one END.
UOp expand_end(const UOp& end);

}  // namespace tinygrad::codegen
