#pragma once
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// Gives every temporary of a schedule its place: one arena a device, in which temporaries share bytes if no kernel needs both. `calls` in
/// the order to run; `temporaries` are PARAMs with slots from `first` on.
void plan_memory(std::span<const UOp> calls, std::span<const UOp> temporaries, int32_t first, bool reuse, Plan& plan);

}  // namespace tinygrad::schedule
