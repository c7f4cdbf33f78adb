#pragma once
#include <utility>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::schedule {

/// A graph that no longer names memory or values: BUFFERs have become PARAMs numbered in walking order, BINDs their VARs.
struct Normalized {
  UOp sink;
  std::vector<UOp> inputs;
  std::vector<std::pair<UOp, int64_t>> variables;
};

/// Inlines calls of FUNCTIONs first, and leaves out what tells tensors apart. Throws ValueError if one variable is bound to two values.
Normalized normalize(const UOp& sink);

/// The graph with CALLs of FUNCTIONs replaced by what these compute, and TENSORs and REALIZEDs by their values.
UOp inline_calls(const UOp& sink);

}  // namespace tinygrad::schedule
