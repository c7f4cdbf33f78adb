#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// STOREs inside of COMMITs that only move what a LOAD reads of an argument to memory of the group, in pieces that the target copies
/// asynchronously, become FETCHes. Without any the COMMITs and WAITs go.
UOp fetch_copies(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
