#pragma once
#include <vector>

#include "schedule/merge_kernels.h"
#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// Small kernels that do not need each other, as loop nests of one kernel that run one after another: on the CPU, where a launch costs more
/// than they do. A kernel waits for others to join it until one comes that conflicts with it. `kernels` in an order in which they may run;
/// so is the result. Each element is the nests of one kernel.
std::vector<std::vector<MergedKernel>> join_nests(std::vector<MergedKernel> kernels, const TargetOf& target_of);

}  // namespace tinygrad::schedule
