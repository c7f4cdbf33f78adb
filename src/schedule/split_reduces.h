#pragma once
#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// A long reduction to few results would run on one thread: it is cut into chunks whose results are stored, and a reduction of those. The
/// chunks follow from the shape alone. `sink` is a prepared graph.
UOp split_reduces(const UOp& sink, const TargetOf& target_of);

}  // namespace tinygrad::schedule
