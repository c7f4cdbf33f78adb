#pragma once
#include <vector>

#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// Kernels that differ in numbers alone, such as the offsets at which the steps of a loop read one tensor, or factors, become one with
/// variables, to which each call binds its numbers: it is lowered and compiled once. The numbers that may differ are those added to the
/// index of an access, and those that are added to floats or multiply them; what sizes loops and decides conditions stays as it is. On a
/// GPU only where offsets differ by whole vectors, since what is known of an offset makes its accesses wider there.
UOp share_kernels(const UOp& linear, const TargetOf& target_of);

}  // namespace tinygrad::schedule
