#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Simplifies the index of each gated access by what its gate says, and the gate itself. Once, before opts make copies of the accesses.
UOp simplify_gates(const UOp& graph);

}  // namespace tinygrad::codegen
