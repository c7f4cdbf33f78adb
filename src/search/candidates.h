#pragma once
/// Lists of opts to try.

#include <vector>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::search {

/// Lists that differ from `opts` by a step: an opt with another number, one less, one more at the end, or a loop cut into blocks that run
/// outside of the others. `kernel` is simplified (codegen::simplified_kernel). Some may be refused by apply_opts().
std::vector<std::vector<Opt>> neighbours(const UOp& kernel, const std::vector<Opt>& opts, const Target& target);

}  // namespace tinygrad::search
