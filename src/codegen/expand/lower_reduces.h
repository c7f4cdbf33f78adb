#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Replaces each REDUCE by an accumulator (a BUFFER of scope reg) that is set to the identity, changed in a loop and read after it.
/// REDUCEs over the same ranges that do not depend on each other share the loop; where a range would be used by a second loop, that one
/// gets ranges of its own. A REDUCE over lanes by an ALU op is left, over the values that the lanes accumulated, where the target has its
/// dtype.
UOp lower_reduces(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
