#pragma once
/// Dtype rules of the ops.

#include <span>

#include "uop/uop.h"

namespace tinygrad {

/// The dtype of `op` over these sources. Throws DTypeError where the op does not take them. Ops whose dtype is not a function of their
/// sources (CONST, BUFFER, PARAM, CAST, BITCAST, WMMA, GETTUPLE of anything but a TUPLE) are an InternalError.
DType infer_dtype(Op op, std::span<const UOp> sources);

}  // namespace tinygrad
