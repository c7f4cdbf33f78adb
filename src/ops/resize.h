#pragma once
/// Values sampled at other positions along their last axes.

#include <string_view>

#include <tinygrad/op_arguments.h>

#include "ops/operand.h"

namespace tinygrad::ops {

/// "linear", "nearest", "nearest-exact"; ValueError for others.
Interpolation interpolation_named(std::string_view name);

/// The last axes of x, as many as `size` has, resized to it. Linear is bilinear over two axes and trilinear over three. Nearest takes the
/// element where the output's begins, nearest_exact that under its middle. Sizes of x in these axes must be known. The dtype stays; float16
/// and narrower, and integers, are interpolated in float32, which uint8 is rounded from and wider integers are cut from. ValueError for
/// sizes below 1 or more than x has axes, ShapeError where x is empty or of unknown size in one of them.
UOp interpolate(const UOp& x, std::span<const int64_t> size, const InterpolateOptions& options = {});

}  // namespace tinygrad::ops
