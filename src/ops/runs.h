#pragma once
/// Lists of indices brought into order, so that what an index names is found without comparing all with all.

#include "ops/operand.h"

namespace tinygrad::ops {

/// Whether comparing every index with every position costs more than ordering the indices. Unknown numbers of them are compared.
bool worth_ordering(const SInt& indices, const SInt& positions);

/// Positions of equal keys side by side. Arrays of (..., m) or (..., n), the axes before as those of the index.
struct Runs {
  UOp keys;   ///< (..., m) the indices in order, n for those out of range
  UOp order;  ///< (..., m) where each was; equal ones in their order
  UOp count;  ///< (..., n) how many indices name the position
  UOp last;   ///< (..., n) the place in `keys` of the last one that does; of no use where none does
};

/// The indices of the last axis, signed integers, ordered by the n positions that they name.
Runs ordered_runs(const UOp& index, int64_t n);

/// The number of elements of the last axis of `sorted` (..., m), ascending, that are at most `value` (..., k), as count() has them: a
/// binary search.
UOp count_at_most(const UOp& sorted, const UOp& value);

/// Running combinations along an axis of `values`, starting anew where the keys change: equal keys of `keys`, which broadcasts to values,
/// are side by side. In a fixed order, by doubling distances.
UOp scan_runs(const UOp& values, const UOp& keys, int axis, UOp (*combine)(const Operand&, const Operand&, const OpsContext&));

}  // namespace tinygrad::ops
