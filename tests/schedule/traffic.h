#pragma once
#include <cstdint>

#include "uop/uop.h"

namespace tinygrad::schedule {

/// What one kernel moves and computes, from its graph alone.
struct Traffic {
  int64_t bytes = 0;  ///< distinct elements read, and those written, of each buffer; elements at places that depend on data: all accesses
  double work = 0;    ///< ALU operations on data, each once for every value of the ranges it depends on
};

/// Of a CALL of a schedule: a kernel or a copy.
Traffic traffic_of(const UOp& call);

}  // namespace tinygrad::schedule
