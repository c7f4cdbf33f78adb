#pragma once
#include "uop/uop.h"

namespace tinygrad {

/// The value that changes nothing under the op of a REDUCE: 0 for ADD, the least value for MAX, ...
UOp reduce_identity(Op op, DType dtype);

}  // namespace tinygrad
