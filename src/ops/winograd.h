#pragma once
#include "uop/uop.h"

namespace tinygrad::ops {

/// Whether winograd_conv2d computes it: windows of 2 to 5 elements along both axes of an image of known size, of floats.
bool suits_winograd(const UOp& x, const UOp& weight);

/// Whether it has to do less than the direct sum: fewer products, but what they are computed of and their sums are in memory between
/// kernels, 1 GiB at most. Fixed windows are transformed once, so that takes no time. Never for floats of less than 32 bits, which round
/// too much.
bool winograd_pays(const UOp& x, const UOp& weight, int64_t groups, bool fixed_windows);

/// The convolution of x (batch, groups * in, height, width) with windows (groups * out, in, 2 to 5, 2 to 5), without padding: 36 products
/// for each pair of channels give the results of a tile, of 4x4 for windows of 3x3 instead of 144 (Lavin and Gray, "Fast algorithms for
/// convolutional neural networks", 2015). Rounding errors are some four times those of the direct sum, and what is infinite or not a number
/// spreads over its tiles.
UOp winograd_conv2d(const UOp& x, const UOp& weight, int64_t groups);

}  // namespace tinygrad::ops
