#pragma once
#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// Small kernels that do not need each other, as loop nests of one kernel that run one after another: on the CPU, where a launch costs more
/// than they do. A kernel waits for others to join it until one comes that conflicts with it. Takes the list of repeat_kernels; the result
/// is in an order in which it may run, too.
UOp join_nests(const UOp& linear, const TargetOf& target_of);

}  // namespace tinygrad::schedule
