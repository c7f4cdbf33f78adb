#pragma once
/// Numbers in few bits: scales and zero points for a tensor, an axis or a block of it.

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

/// Scales or zero points as they stand beside elements of a tensor of this shape: one number, one for each index of the axis, or one for
/// each block of `block` elements along it.
Tensor spread(const Call& call, const Tensor& v, const Sizes& shape, int64_t axis, int64_t block);
/// Rounded to the nearest integer, ties to even, moved by the zero point (which may be undefined) and bounded to the type.
Value quantized(const Tensor& scaled, const Tensor& zero_point, ElementType type, bool saturate = true);
/// Elements less their zero points, int32.
Tensor centered(const Call& call, size_t x, size_t zero_point, int64_t axis);

}  // namespace tinygrad::onnx
