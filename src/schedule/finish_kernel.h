#pragma once
#include "schedule/merge_kernels.h"

namespace tinygrad::schedule {

/// The CALL of a kernel: its body a SINK over PARAMs and ranges of its own, numbered from 0, so that equal kernels are one node; its
/// arguments the PARAMs of the schedule, then the VARs by name.
UOp finish_kernel(const MergedKernel& kernel, const Target& target);

}  // namespace tinygrad::schedule
