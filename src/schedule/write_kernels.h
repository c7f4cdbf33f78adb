#pragma once
#include <vector>

#include "schedule/placement.h"

namespace tinygrad::schedule {

/// From inputs to outputs, writes each kernel of a placement as scalar expressions over ranges.
Kernels write_kernels(const std::vector<UOp>& order, Placement placement);

}  // namespace tinygrad::schedule
