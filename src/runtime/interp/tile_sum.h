#pragma once
#include "target/target.h"

namespace tinygrad::runtime::interp {

/// An element of the sums of a product of AMX tiles (multiplies_tiles()): `c` and the products of `core.k` numbers of `a` and as many of
/// `b`, `step` apart, added and rounded as the instruction does. Intel's manual of instructions (volume 2) has TDPBF16PS, TDPFP16PS and
/// TDPBSSD.
double tile_sum(const TensorCore& core, const double* a, const double* b, size_t step, double c);

}  // namespace tinygrad::runtime::interp
