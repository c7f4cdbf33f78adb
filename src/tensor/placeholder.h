#pragma once
/// The arguments of a function() while its body is built: PARAMs that no CALL binds yet, so they have no value.

#include "uop/uop.h"

namespace tinygrad::tensor {

/// A new one with the shape, dtype and device of `value`.
UOp placeholder_like(const UOp& value);
bool is_placeholder(const UOp& node);

}  // namespace tinygrad::tensor
