#pragma once
#include <vector>

#include "schedule/schedule.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// A long reduction to few results would run on one thread: it is cut into chunks whose results are stored, and a reduction of those. The
/// chunks follow from the shape alone. `sink` is a prepared graph. `cuts` gets what stands for the results of chunks.
UOp split_reduces(const UOp& sink, const TargetOf& target_of, std::vector<UOp>* cuts = nullptr);

}  // namespace tinygrad::schedule
