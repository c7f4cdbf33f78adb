#pragma once
/// Opts without a search.

#include <vector>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Opts that are good for most kernels of this kind on the target; they follow from the kernel and the Target alone.
std::vector<Opt> heuristic_opts(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
