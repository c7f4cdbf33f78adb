#pragma once
#include "schedule/schedule.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// The calls of a schedule on several devices as calls on each of them: a kernel once for each part of what it writes, with the number that
/// its shard has along each direction of the mesh, and a collective as copies between devices and kernels that add up. Temporaries, whose
/// slots are those from `first_temporary` on, become one for each part. If `only` is a device's name, the calls are those of that device.
UOp select_shards(const UOp& linear, const TargetOf& target_of, int32_t first_temporary, Symbol only = {});

}  // namespace tinygrad::schedule
