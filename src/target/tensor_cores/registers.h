#pragma once
#include "target/target.h"

namespace tinygrad {

/// Registers of a CPU that a tensor core's product takes besides its operands and its sum.
int temporaries_of(const TensorCore& core);

}  // namespace tinygrad
