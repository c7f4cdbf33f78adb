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
///
/// With `open_numbers`, the numbers that the caller gave to operators (ConstArg::given) become variables, too: graphs that differ in them
/// alone share a plan and its kernels. If there are more than a few in a graph, all of them stay constants; then share_kernels.h finds
/// kernels that differ in nothing else.
Normalized normalize(const UOp& sink, bool open_numbers = false);

/// The graph with CALLs of FUNCTIONs replaced by what these compute, and TENSORs and REALIZEDs by their values.
UOp inline_calls(const UOp& sink);

}  // namespace tinygrad::schedule
