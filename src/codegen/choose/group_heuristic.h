#pragma once
#include <vector>

#include "codegen/choose/nest.h"
#include "target/target.h"

namespace tinygrad::codegen {

/// Opts for a kernel of one loop nest on a target with work-groups: a tensor core where one fits, work-items that share long reductions of
/// few outputs, register tiles that share loads, and work-items along the outputs. With `pads`, a tensor core may compute beyond the sizes.
std::vector<Opt> group_heuristic(const UOp& sink, const Nest& nest, const Target& target, bool pads = false);

}  // namespace tinygrad::codegen
