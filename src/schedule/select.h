#pragma once
#include "uop/uop.h"

namespace tinygrad::schedule {

/// True for a tensor-level sum along an axis of what stands where the position equals an index: the form of gather.
bool is_selection(const UOp& reduce);

/// The same sum over `range` in scalar form, `x` being `where(index == range, value, 0)`: the value at the index, read only if the index is
/// in range. Null if `x` is something else.
UOp selected(const UOp& x, const UOp& range);

}  // namespace tinygrad::schedule
