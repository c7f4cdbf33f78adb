#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::search {

/// How much a linear program executes: vector operations and accesses, by the loops around them. It knows nothing of caches: good for
/// telling what is not worth compiling, not for choosing.
double program_cost(const UOp& linear, const Target& target);

}  // namespace tinygrad::search
