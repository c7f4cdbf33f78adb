#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Loops with a STAGE of depth d > 1 are run ahead of by d - 1 iterations: a prologue fills d - 1 tiles before the loop; each iteration
/// then fills the tile of a later one while it reads its own (there are d of them); the last d - 1 iterations, in an epilogue, only read.
/// On targets with asynchronous copies, tiles that are copies of an argument are filled by those: an iteration waits for its own tile, and
/// the copies of the others go on meanwhile.
/// What cannot be run ahead of keeps its STAGE, to be lowered as one of depth 1.
UOp pipeline_stages(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
