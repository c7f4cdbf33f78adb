#pragma once
#include <span>

#include "schedule/merge_kernels.h"
#include "target/target.h"

namespace tinygrad::schedule {

/// The CALL of a kernel that runs `nests` one after another: its body a SINK over PARAMs and ranges of its own, numbered from 0, so that
/// equal kernels are one node; its arguments the PARAMs of the schedule, then the VARs by name.
UOp finish_kernel(std::span<const MergedKernel> nests, const Target& target);

}  // namespace tinygrad::schedule
