#pragma once
#include <vector>

#include "schedule/effects.h"
#include "schedule/kernel.h"

namespace tinygrad::schedule {

/// An order in which every kernel comes after those that make what it reads, after the store that made each state it reads, and before
/// the stores that replace that state. Among those that may run, the first in walking order runs. InternalError if there is none.
std::vector<int> order_kernels(const std::vector<Kernel>& kernels, const Effects& effects);

/// Where kernels wait for each other in a circle, because each reads what another writes over (two buffers that swap their contents): nodes
/// of which one, computed into memory of its own first, takes a kernel out of a circle. The first that is not yet is the cheapest.
std::vector<UOp> circle_breakers(const std::vector<Kernel>& kernels, const Effects& effects);

}  // namespace tinygrad::schedule
