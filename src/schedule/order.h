#pragma once
#include <vector>

#include "schedule/rangeify.h"

namespace tinygrad::schedule {

/// An order in which every kernel comes after those that make what it reads, after the store that made each state it reads, and before
/// the stores that replace that state. Among those that may run, the first in walking order runs. InternalError if there is none.
std::vector<int> order_kernels(const std::vector<Kernel>& kernels, const Effects& effects);

}  // namespace tinygrad::schedule
