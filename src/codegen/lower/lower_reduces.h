#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Lowers REDUCEs over ranges of kind outer that carry one value, as lower_reduces() does, where there is a register tile: their results
/// are in memory anyway, so what follows them becomes a loop over the tile, and only their steps are left to be written out.
UOp lower_tiled_reduces(const UOp& sink, const Target& target);

/// Replaces each REDUCE by an accumulator (a BUFFER of scope reg) that is set to the identity, changed in a loop and read after it.
/// REDUCEs over the same ranges that do not depend on each other share the loop; where a range would be used by a second loop, that one
/// gets ranges of its own. A REDUCE over lanes by an ALU op is left, over the values that the lanes accumulated, where the target has its
/// dtype.
UOp lower_reduces(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
