#pragma once
#include "uop/uop.h"

namespace tinygrad::schedule {

/// A graph of values on several devices as the graph of what each shard computes: memory on several devices is one PARAM, whose slots are
/// those of its parts; a VAR with devices is where a shard is along a direction of the mesh; and where shards need what others have there
/// are COLLECTIVEs. Each op is computed as Spread says; graphs on single devices stay as they are.
UOp shard(const UOp& sink);

}  // namespace tinygrad::schedule
