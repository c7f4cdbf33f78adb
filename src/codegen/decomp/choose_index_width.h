#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Gives everything of dtype `index` the dtype int32, or int64 where a value of the kernel or the size of a buffer may not fit. No
/// `index` is left. On a target without int64 each value has the width that it needs itself; CompileError for a loop or a variable that
/// does not fit 32 bits.
UOp choose_index_width(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
