// Quantization and products of quantized numbers.
#include "frontend/onnx/operators/quantized.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators/window.h"

namespace tinygrad::onnx {

Tensor spread(const Call& call, const Tensor& v, const Sizes& shape, int64_t axis, int64_t block) {
  if (block < 0 || block > int64_t{1} << 24) call.fail(fmt::format("blocks of {}", block));
  if (v.numel() == 1 && (v.ndim() <= 1 || block == 0)) return v.reshape({});
  const int at = normal_axis(call, axis, shape.size());
  if (block == 0) {
    if (v.ndim() != 1) return v;
    if (v.numel() != shape[size_t(at)])
      throw ShapeError(fmt::format("{} numbers for axis {} of ({})", v.numel(), at, fmt::join(shape, ", ")));
    Sizes along(shape.size(), 1);
    along[size_t(at)] = v.numel();
    return v.reshape(along);
  }
  if (v.ndim() != int(shape.size()) || v.size(at) != (shape[size_t(at)] + block - 1) / block)
    throw ShapeError(fmt::format("{} for blocks of {} of ({})", v.to_string(), block, fmt::join(shape, ", ")));
  Tensor each = v.repeat_interleave(block, at);
  if (each.size(at) < shape[size_t(at)]) call.fail(fmt::format("{} blocks of {} for {} elements", v.size(at), block, shape[size_t(at)]));
  Sizes sizes(shape.size(), -1);
  sizes[size_t(at)] = shape[size_t(at)];
  return each.shrink_to(sizes);
}

Value quantized(const Tensor& scaled, const Tensor& zero_point, ElementType type, bool saturate) {
  if (is_float_type(type)) {
    const Tensor moved = zero_point.defined() ? scaled + zero_point : scaled;
    if (is_low_bit(type)) return {encode_bits(moved, type), type};
    return {scaled.cast(dtype_of(type), saturate), type};
  }
  const auto [least, most] = integer_range(type);
  const Tensor wide = scaled.dtype() == DType::float64 ? scaled : scaled.cast(DType::float32);
  Tensor rounded = wide.round();
  if (zero_point.defined()) rounded = rounded + zero_point.cast(wide.dtype());
  return {rounded.clamp(double(least), double(most)).cast(DType::int32).cast(dtype_of(type)), type};
}

Tensor centered(const Call& call, size_t x, size_t zero_point, int64_t axis) {
  Tensor wide = call.tensor(x).cast(DType::int32);
  if (!call.has(zero_point)) return wide;
  return wide - spread(call, call.tensor(zero_point).cast(DType::int32), wide.shape(), axis, 0);
}

namespace {

Results quantize_linear(Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.attribute("axis", 1), block = c.attribute("block_size", 0);
  const bool has_type = c.attribute("output_dtype", 0) != 0;
  ElementType type = has_type ? c.type_attribute("output_dtype", ElementType::uint8) : ElementType::uint8;
  if (c.has(2)) {
    if (has_type && type != c.type(2)) c.fail(fmt::format("output_dtype is {}, the zero point {}", name(type), name(c.type(2))));
    type = c.type(2);
  }
  Tensor scale = spread(c, decode(c.value(1)), x.shape(), axis, block), wide = x;
  const int64_t precision = c.attribute("precision", 0);
  const DType compute = precision               ? dtype_of(c.type_attribute("precision", ElementType::float32))
                        : x.is_floating_point() ? least_upper_dtype(x.dtype(), scale.dtype())
                                                : DType::float32;
  wide = wide.cast(compute) / scale.cast(compute);
  const Tensor zero = c.has(2) ? spread(c, decode(c.value(2)), x.shape(), axis, block) : Tensor();
  return {quantized(wide, zero, type, c.flag("saturate", true))};
}

Results dequantize_linear(Call& c) {
  const Value& x = c.value(0);
  const int64_t axis = c.attribute("axis", 1), block = c.attribute("block_size", 0);
  const Tensor scale = decode(c.value(1));
  const DType out = c.attribute("output_dtype", 0) ? dtype_of(c.type_attribute("output_dtype", ElementType::float32)) : scale.dtype();
  const DType compute = scale.dtype() == DType::float64 ? DType::float64 : DType::float32;
  Tensor wide = decode(x);
  if (c.has(2) && !is_float_type(x.element_type())) {
    const bool is_wide = itemsize(wide.dtype()) >= 4;
    const DType integer = is_wide ? DType::int64 : DType::int32;
    wide = wide.cast(integer) - spread(c, c.tensor(2).cast(integer), x.shape(), axis, block);
  }
  return results((wide.cast(compute) * spread(c, scale, x.shape(), axis, block).cast(compute)).cast(out));
}

/// A range that includes 0, in 256 steps.
Results dynamic_quantize_linear(Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor least = x.min().minimum(0), most = x.max().maximum(0);
  const Tensor range = (most - least) / 255, scale = (range == 0).where(1, range);
  const Tensor zero = (-least / scale).round().clamp(0, 255);
  const Value y = quantized(x / scale, zero, ElementType::uint8);
  return {y, Value(range), Value(zero.cast(DType::uint8))};
}

/// A sum of int32 products as numbers of the output's scale.
Value requantized(const Tensor& sums, const Tensor& factor, const Call& c, size_t zero_point) {
  return quantized(sums.cast(DType::float32) * factor.cast(DType::float32), c.tensor(zero_point).reshape({}), c.type(zero_point));
}

/// Scales and zero points of the left matrix stand for its rows, those of the right one for its columns.
Results qlinear_matmul(Call& c) {
  const auto by_row = [](const Tensor& t) { return t.ndim() == 1 && t.numel() > 1 ? t.unsqueeze(-1) : t.numel() == 1 ? t.reshape({}) : t; };
  const auto by_column = [](const Tensor& t) { return t.numel() == 1 ? t.reshape({}) : t; };
  const Tensor a = c.tensor(0).cast(DType::int32) - by_row(c.tensor(2)).cast(DType::int32);
  const Tensor b = c.tensor(3).cast(DType::int32) - by_column(c.tensor(5)).cast(DType::int32);
  const Tensor factor =
      by_row(c.tensor(1)).cast(DType::float32) * by_column(c.tensor(4)).cast(DType::float32) / c.tensor(6).cast(DType::float32);
  return {requantized(a.matmul(b, DType::int32), factor, c, 7)};
}

Results qlinear_conv(Call& c) {
  const Tensor x = centered(c, 0, 2, 1), w = centered(c, 3, 5, 0);
  const int rank = x.ndim();
  Tensor sums = convolve(c, x, w, {}).cast(DType::int32);
  Sizes channels(size_t(rank) - 1, 1);
  channels[0] = w.size(0);
  if (c.has(8)) sums = sums + c.tensor(8).reshape(channels);
  Tensor w_scale = c.tensor(4);
  w_scale = w_scale.numel() == 1 ? w_scale.reshape({}) : w_scale.reshape(channels);
  return {requantized(sums, c.tensor(1).reshape({}) * w_scale / c.tensor(6).reshape({}), c, 7)};
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "DequantizeLinear", 10, dequantize_linear}, {onnx_domain, "DynamicQuantizeLinear", 11, dynamic_quantize_linear},
    {onnx_domain, "QLinearConv", 10, qlinear_conv},           {onnx_domain, "QLinearMatMul", 10, qlinear_matmul},
    {onnx_domain, "QuantizeLinear", 10, quantize_linear},
};

}  // namespace

std::span<const OperatorRow> quantized_operators() { return rows; }

}  // namespace tinygrad::onnx
