#pragma once
/// Numbers in few bits: scales and zero points for a tensor, an axis or a block of it.

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

/// Scales or zero points as they stand beside elements of a tensor of this shape: one number, one for each index of the axis, or one for
/// each block of `block` elements along it.
Tensor spread(const Call& call, const Tensor& v, const Sizes& shape, int64_t axis, int64_t block);
/// Rounded to the nearest integer, ties to even, moved by the zero point (which may be undefined) and bounded to the type.
Value quantized(const Tensor& scaled, const Tensor& zero_point, ElementType type, bool saturate = true);
/// A range that includes 0, in 256 steps.
struct DynamicCodes {
  Tensor codes;  ///< uint8
  Tensor scale;  ///< 0 where all elements are
  Tensor zero;   ///< uint8
};
DynamicCodes dynamic_codes(const Tensor& x);
/// Codes of 8 bits less their zero point, int16, which are stored: products of int16 are what processors have instructions for. The zero
/// point may be undefined; else it broadcasts.
Tensor centered(const Tensor& codes, const Tensor& zero_point);
/// A right factor as a product of `x` with it reads it. Where it is computed of weights alone and x has many rows it is stored, which a
/// captured call does once; for a few rows it costs less to compute it than to load it.
Tensor factor_for(const Tensor& x, const Tensor& weights);
/// A zero point, not defined where there is none or where all are known to be 0.
Tensor zero_point(const Call& call, size_t input);
/// A zero point or a scale beside a matrix: one number, one for each row, or one for each column.
Tensor by_row(const Tensor& v);
Tensor by_column(const Tensor& v);
/// int32 sums of products of (..., M, K) and (..., K, N), each less its zero point.
Tensor integer_matmul(const Tensor& a, const Tensor& a_zero, const Tensor& b, const Tensor& b_zero);
/// Products of floats that were dequantized, as sums of products of their codes times their scales; not defined where the device has no
/// instruction for that, or where scales are not those of rows of the left factor and columns of the right one.
Tensor matmul_of_codes(const Value& a, bool turns_a, const Value& b, bool turns_b);
Tensor convolve_codes(const Call& call, const Value& x, const Value& w);
/// Whether numbers are computed of sums of integer products that are not stored, each of the one at its own place. Where
/// their columns are split, as by the heads of an attention, they are stored: a product in loops of few columns has narrow tiles.
bool is_of_integer_sums(const Tensor& t);

}  // namespace tinygrad::onnx
