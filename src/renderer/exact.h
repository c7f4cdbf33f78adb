#pragma once
#include "uop/uop.h"

namespace tinygrad::renderer {

/// True where bounds prove that a signed integer is the exact result of its op. A result that may wrap has only the bounds of its dtype.
bool is_exact(const UOp& u);

}  // namespace tinygrad::renderer
