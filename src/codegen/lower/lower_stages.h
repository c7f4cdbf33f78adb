#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Replaces each STAGE by a BUFFER (of scope group where it has that, else reg) that is filled in the innermost loop that the STAGE is
/// inside of, and read behind that, but for what tensor cores read themselves. Group memory has a BARRIER between writes and reads.
/// ValueError where the target has too little of it.
UOp lower_stages(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
