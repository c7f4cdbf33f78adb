#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Gives everything of dtype `index` the dtype int32, or int64 where a value of the kernel or the size of a buffer may not fit. No
/// `index` is left.
UOp choose_index_width(const UOp& sink);

}  // namespace tinygrad::codegen
