#pragma once
#include "uop/graph.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Values that are computed of a load, of other loads and of constants, that depend on no more loops than the load and need no reduction.
struct ComputedValues {
  NodeSet nodes;  ///< these values, with the load, and nodes that only they need
  UOps last;      ///< the values that other nodes use
};

/// `nodes` are all of the kernel, sources first.
ComputedValues computed_of(const UOp& load, std::span<const UOp> nodes);

}  // namespace tinygrad::codegen
