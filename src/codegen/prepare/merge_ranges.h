#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Makes one range of two neighbouring ones that are closed together, wherever every index steps through both as through one: a copy of
/// a (32, 8, 8) tensor has one loop of 2048. Works on a simplified kernel and makes no divisions.
UOp merge_ranges(const UOp& sink);

}  // namespace tinygrad::codegen
