#pragma once
#include <cstdint>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// An index as a base, which neighbours share, plus a number of elements; a null base is the beginning of the memory.
struct Distance {
  UOp from;
  int64_t elements = 0;
};

Distance distance_of(const UOp& at);

}  // namespace tinygrad::codegen
