#pragma once
#include "uop/uop.h"

namespace tinygrad {

/// The memory that an INDEX accesses, without its states (AFTER).
UOp memory_of(const UOp& place);
/// Bytes of an argument of a kernel; 0 for other memory and for images, and if the size is not known.
int64_t memory_bytes(const UOp& memory);

}  // namespace tinygrad
