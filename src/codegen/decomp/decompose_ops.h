#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Writes ops that the target does not have by those it has. `transcendental` as in CodegenOptions.
UOp decompose_ops(const UOp& sink, const Target& target, int transcendental);

}  // namespace tinygrad::codegen
