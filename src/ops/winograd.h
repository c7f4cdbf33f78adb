#pragma once
#include "uop/uop.h"

namespace tinygrad::ops {

/// The convolution of x (batch, groups * in, height, width) with 3x3 kernels (groups * out, in, 3, 3), without padding: tiles of 4x4
/// results from 36 products for each pair of channels instead of 144 (Lavin and Gray, "Fast algorithms for convolutional neural networks",
/// 2015). Rounding errors are some ten times those of the direct sum. The height and the width must be known.
UOp winograd_conv2d(const UOp& x, const UOp& weight, int64_t groups);

}  // namespace tinygrad::ops
