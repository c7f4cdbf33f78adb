#pragma once
#include "uop/uop.h"

namespace tinygrad::schedule {

/// Takes from a normalized graph what has no meaning for scheduling (DETACH, copies to the same device, CONTIGUOUS of what is stored
/// that way already), makes the source of every COPY something stored, and folds constants. All users of a computed value with
/// a CONTIGUOUS read that.
UOp prepare(const UOp& sink);

/// True for all of a PARAM in its own order, reshaped or not, in its first state.
bool is_whole_memory(const UOp& u);

}  // namespace tinygrad::schedule
