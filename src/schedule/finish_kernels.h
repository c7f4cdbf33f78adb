#pragma once
#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// Makes the CALLs of kernels: the body a SINK over PARAMs and ranges of its own, numbered from 0, so that equal kernels are one node; the
/// arguments the PARAMs of the schedule, then the VARs by name, as BINDs where a loop around the kernel gives them values.
UOp finish_kernels(const UOp& linear, const TargetOf& target_of);

}  // namespace tinygrad::schedule
