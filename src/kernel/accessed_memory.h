#pragma once
#include "uop/uop.h"

namespace tinygrad {

/// What an INDEX is a place of, in whatever state.
UOp memory_of(const UOp& place);
/// Of a kernel's flat argument; 0 for other memory, and for what has no known size.
int64_t memory_bytes(const UOp& memory);

}  // namespace tinygrad
