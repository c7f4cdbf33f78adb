#pragma once
#include "uop/graph.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// What is computed of a load, of others and of constants, along no more loops than the load itself moves with, and without any reduction.
struct ComputedValues {
  NodeSet nodes;  ///< all of it, with the load and with what nothing else needs
  UOps last;      ///< those that something else uses
};

/// `nodes` are all of the kernel, sources first.
ComputedValues computed_of(const UOp& load, std::span<const UOp> nodes);

}  // namespace tinygrad::codegen
