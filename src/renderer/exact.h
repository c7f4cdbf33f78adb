#pragma once
#include "uop/uop.h"

namespace tinygrad::renderer {

/// True where bounds prove that a signed integer is the exact result: of one that wraps, nothing but the dtype's bounds is known.
bool is_exact(const UOp& u);

}  // namespace tinygrad::renderer
