#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Moves the validity of an INDEX to what accesses memory: LOAD(INDEX(m, i, valid)) becomes LOAD(INDEX(m, i), 0, valid), and a STORE gets
/// the gate. No INDEX with a validity is left.
UOp lower_gates(const UOp& sink);

}  // namespace tinygrad::codegen
