// Quantization and products of quantized numbers.
#include "frontend/onnx/operators/quantized.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <tinygrad/errors.h>
#include <tinygrad/target.h>

#include "device/device.h"
#include "frontend/onnx/operators/window.h"
#include "uop/graph.h"

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

DynamicCodes dynamic_codes(const Tensor& x) {
  const Tensor least = x.min().minimum(0), most = x.max().maximum(0);
  const Tensor range = (most - least) / 255, scale = (range == 0).where(1, range);
  const Tensor zero = (-least / scale).round().clamp(0, 255);
  return {quantized(x / scale, zero, ElementType::uint8).tensor(), range, zero.cast(DType::uint8)};
}

Tensor centered(const Tensor& codes, const Tensor& zero_point) {
  if (codes.dtype() != DType::int8 && codes.dtype() != DType::uint8)
    throw ValueError(fmt::format("products of {} codes are not supported; expects int8 or uint8", repr(codes.dtype())));
  const Tensor wide = codes.cast(DType::int16);
  return (zero_point.defined() ? wide - zero_point.cast(DType::int16) : wide).contiguous();
}

Tensor by_row(const Tensor& v) {
  if (v.defined() && v.numel() == 1) return v.reshape({});
  return v.defined() && v.ndim() == 1 ? v.unsqueeze(-1) : v;
}
Tensor by_column(const Tensor& v) { return v.defined() && v.numel() == 1 ? v.reshape({}) : v; }

Tensor factor_for(const Tensor& x, const Tensor& weights) {
  constexpr int64_t many_rows = 8;
  Extent rows(1);
  for (int i = 0; i + 1 < x.ndim(); ++i) rows = rows * x.symbolic_shape()[size_t(i)];
  if (x.ndim() == 0 || rows.max() < many_rows) return weights;
  const auto computes = [](const UOp& u) { return u.in(Group::alu) || u.is(Op::CAST); };
  return std::ranges::any_of(toposort(weights.uop()), computes) ? weights.contiguous() : weights;
}

Tensor zero_point(const Call& call, size_t input) {
  if (!call.has(input)) return {};
  const HostArray* host = host_of(call.value(input));
  const auto is_zero = [](int64_t n) { return n == 0; };
  return host && std::ranges::all_of(host->integers(), is_zero) ? Tensor() : call.tensor(input);
}

namespace {

bool has_core(const Tensor& x, DType a, DType b) {
  const auto& cores = Device::get(x.device()).target().tensor_cores;
  return std::ranges::any_of(cores, [&](const TensorCore& c) { return c.a_type == a && c.b_type == b && c.out == DType::int32; });
}

/// int32 sums of so many products of two codes less their zero points are right, as long as none overflows.
bool may_sum(int64_t products) { return products <= INT32_MAX / (255 * 255); }

}  // namespace

bool is_of_integer_sums(const Tensor& t) {
  NodeSet seen;
  for (std::vector<UOp> stack{t.uop()}; !stack.empty();) {
    const UOp u = std::move(stack.back());
    stack.pop_back();
    if (u.is(Op::REDUCE) && u.dtype() == DType::int32) return true;
    const bool keeps_place = u.in(Group::elementwise | Group::identity) || u.is(Op::RESHAPE);
    if (!keeps_place || u.is(Op::CONTIGUOUS) || !seen.insert(u)) continue;
    for (const UOp& s : u.in(Group::elementwise) ? u.src() : u.src().first(1)) stack.push_back(s);
  }
  return false;
}

Tensor integer_matmul(const Tensor& a, const Tensor& a_zero, const Tensor& b, const Tensor& b_zero) {
  if (!has_core(a, a.dtype(), b.dtype())) return centered(a, a_zero).matmul(centered(b, b_zero), DType::int32);
  // Zero points go out of the sum, which is one of bytes: (a - za) (b - zb) = ab - za b - zb a + za zb, of which int32 may overflow, and
  // comes back.
  const ReduceOptions kept{.keepdim = true, .dtype = DType::int32};
  Tensor sums = a.contiguous().matmul(b.contiguous(), DType::int32);
  const Tensor za = a_zero.defined() ? a_zero.cast(DType::int32) : Tensor(), zb = b_zero.defined() ? b_zero.cast(DType::int32) : Tensor();
  if (za.defined()) sums = sums - za * b.sum(-2, kept).contiguous();
  if (zb.defined()) sums = sums - zb * a.sum(-1, kept).contiguous();
  return za.defined() && zb.defined() ? sums + za * zb * a.size(-1) : sums;
}

Tensor matmul_of_codes(const Value& a, bool turns_a, const Value& b, bool turns_b) {
  const Codes *x = codes_of(a), *y = codes_of(b);
  if (!x || !y || x->codes.ndim() < 2 || y->codes.ndim() < 2) return {};
  const int rows = x->codes.ndim() - (turns_a ? 1 : 2), columns = y->codes.ndim() - (turns_b ? 2 : 1);
  if ((x->axis >= 0 && x->axis != rows) || (y->axis >= 0 && y->axis != columns)) return {};
  const int64_t terms = x->codes.size(x->codes.ndim() - (turns_a ? 2 : 1));
  if (!may_sum(terms) || !has_core(x->codes, DType::int16, DType::int16)) return {};
  const Tensor sums = integer_matmul(turns_a ? x->codes.transpose(-2, -1) : x->codes, by_row(x->zero),
                                     turns_b ? y->codes.transpose(-2, -1) : y->codes, by_column(y->zero));
  return sums.cast(DType::float32) * (by_row(x->scale) * by_column(y->scale));
}

Tensor convolve_codes(const Call& call, const Value& x, const Value& w) {
  const Codes *image = codes_of(x), *filters = codes_of(w);
  if (!image || !filters || image->axis >= 0 || filters->axis > 0 || filters->codes.ndim() < 3) return {};
  const int64_t out = filters->codes.size(0);
  if (out == 0 || !may_sum(filters->codes.numel() / out) || !has_core(image->codes, DType::int16, DType::int16)) return {};
  const auto along = [](const Tensor& v, size_t rank) {
    Sizes shape(rank, 1);
    if (v.numel() > 1) shape[0] = v.numel();
    return v.reshape(shape);
  };
  const auto rank = size_t(filters->codes.ndim());
  const Tensor sums = convolve(call, centered(image->codes, image->zero.defined() ? image->zero.reshape({}) : Tensor()),
                               centered(filters->codes, filters->zero.defined() ? along(filters->zero, rank) : Tensor()), {}, DType::int32);
  return sums.cast(DType::float32) * (image->scale.reshape({}) * along(filters->scale, rank - 1));
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
  Results y = results((wide.cast(compute) * spread(c, scale, x.shape(), axis, block).cast(compute)).cast(out));
  const bool is_byte = x.element_type() == ElementType::int8 || x.element_type() == ElementType::uint8;
  const bool is_one = scale.numel() == 1;
  const Tensor zero = zero_point(c, 2);
  const bool is_along_axis = is_one ? !zero.defined() || zero.numel() == 1 : scale.ndim() == 1 && (!zero.defined() || zero.ndim() <= 1);
  if (is_byte && is_along_axis && block == 0 && scale.dtype() == DType::float32 && out == DType::float32) {
    detail::ValueAccess::set_codes(y[0], {.codes = x.tensor(),
                                          .scale = is_one ? scale.reshape({}) : scale,
                                          .zero = zero,
                                          .axis = is_one ? -1 : normal_axis(c, axis, x.shape().size())});
  }
  return y;
}

Results dynamic_quantize_linear(Call& c) {
  const DynamicCodes d = dynamic_codes(c.tensor(0));
  return {Value(d.codes), Value(d.scale), Value(d.zero)};
}

/// A sum of int32 products as numbers of the output's scale.
Value requantized(const Tensor& sums, const Tensor& factor, const Call& c, size_t zero_point) {
  return quantized(sums.cast(DType::float32) * factor.cast(DType::float32), c.tensor(zero_point).reshape({}), c.type(zero_point));
}

/// Scales and zero points of the left matrix stand for its rows, those of the right one for its columns.
Results qlinear_matmul(Call& c) {
  const Tensor sums = integer_matmul(c.tensor(0), by_row(zero_point(c, 2)), c.tensor(3), by_column(zero_point(c, 5)));
  const Tensor factor =
      by_row(c.tensor(1)).cast(DType::float32) * by_column(c.tensor(4)).cast(DType::float32) / c.tensor(6).cast(DType::float32);
  return {requantized(sums, factor, c, 7)};
}

Results qlinear_conv(Call& c) {
  const int rank = c.tensor(0).ndim();
  Sizes filters(size_t(rank), 1), channels(size_t(rank) - 1, 1);
  const auto along = [](const Tensor& v, Sizes shape) {
    if (v.numel() == 1) return v.reshape({});
    shape[0] = v.numel();
    return v.reshape(shape);
  };
  const Tensor x = centered(c.tensor(0), c.tensor(2).reshape({})), w = centered(c.tensor(3), along(c.tensor(5), filters));
  Tensor sums = convolve(c, x, w, {}, DType::int32);
  if (c.has(8)) sums = sums + along(c.tensor(8), channels);
  return {requantized(sums, c.tensor(1).reshape({}) * along(c.tensor(4), channels) / c.tensor(6).reshape({}), c, 7)};
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "DequantizeLinear", 10, dequantize_linear}, {onnx_domain, "DynamicQuantizeLinear", 11, dynamic_quantize_linear},
    {onnx_domain, "QLinearConv", 10, qlinear_conv},           {onnx_domain, "QLinearMatMul", 10, qlinear_matmul},
    {onnx_domain, "QuantizeLinear", 10, quantize_linear},
};

}  // namespace

std::span<const OperatorRow> quantized_operators() { return rows; }

}  // namespace tinygrad::onnx
