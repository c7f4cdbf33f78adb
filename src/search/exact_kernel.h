#pragma once
#include <optional>

#include "uop/uop.h"

namespace tinygrad::search {

/// The kernel with every float, in memory too, a float64 that is never rounded to another dtype: what it computes is what rounding errors
/// are measured from. None where it looks at the bits of floats, or has no others than float64.
std::optional<UOp> exact_kernel(const UOp& sink);

}  // namespace tinygrad::search
