#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Pipelines loops with a STAGE of depth d > 1, of which there are d tiles. A prologue fills d - 1 tiles before the loop. Each iteration of
/// the steady state fills the tile of the iteration d - 1 later while it reads its own. The last d - 1 iterations, the epilogue, only read.
/// On targets with asynchronous copies, tiles that are copies of an argument are filled by those: an iteration waits for its own tile, and
/// the copies of the others go on meanwhile.
/// Where tiles cannot be filled ahead, the STAGE stays and is lowered as one of depth 1.
UOp pipeline_stages(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
