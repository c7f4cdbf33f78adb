#pragma once
#include <vector>

#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// What to store so that the kernel that computes `root` reads `most` values at most, where each value of `stored` is in memory. Empty if
/// it does, or if nothing in it can be stored. What is stored may need cuts of its own.
std::vector<UOp> argument_cuts(const UOp& root, size_t most, const NodeSet& stored);

}  // namespace tinygrad::schedule
