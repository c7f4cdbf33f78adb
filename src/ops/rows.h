#pragma once
/// Gathering and scattering whole slices along one axis; indices that name no slice are out of range.

#include "ops/operand.h"

namespace tinygrad::ops {

/// x's slices along an axis that `index` (any shape) names; the axes of index take that axis' place. 0 where out of range.
UOp gather_rows(const UOp& x, int axis, const UOp& index);
/// x with the slices that `index` names replaced by those of `rows`, which has the shape of gather_rows(x, axis, index); the last of
/// several wins, those out of range go nowhere.
UOp scatter_rows(const UOp& x, int axis, const UOp& index, const UOp& rows);

}  // namespace tinygrad::ops
