#include "ops/resize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <limits>

#include "ops/creation.h"
#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/rows.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// Where the outputs of one axis lie among its inputs: `low` + `weight` of the way to `high`.
struct Positions {
  UOp low, high, weight;
};

/// The same as whole numbers: `rest` / denominator of the way.
struct Fractions {
  UOp low, high, rest;
  int64_t denominator;
};

/// Aligned: i (in - 1) / (out - 1). Else of the middles: (i + 1/2) in / out - 1/2, not before the first.
int64_t denominator_of(int64_t out, bool align_corners) { return align_corners ? std::max<int64_t>(out - 1, 1) : 2 * out; }

/// Positions are fractions of whole numbers, so that they do not depend on how a scale was rounded.
Fractions linear_fractions(int64_t in, int64_t out, bool align_corners) {
  const bool wide = in > std::numeric_limits<int32_t>::max() / (2 * out) - 1;
  const Expr i = iota(out, wide ? DType::int64 : DType::int32);
  const int64_t denominator = denominator_of(out, align_corners);
  const UOp numerator = align_corners ? i * (in - 1) : UOp(maximum((i * 2 + 1) * in - out, 0));
  const UOp low = minimum(div(numerator, denominator, Rounding::trunc), in - 1);
  return {low, minimum(add(low, 1), in - 1), fmod(numerator, denominator), denominator};
}

Positions linear_positions(int64_t in, int64_t out, bool align_corners, DType weight_dtype) {
  const Fractions f = linear_fractions(in, out, align_corners);
  return {f.low, f.high, div(tinygrad::cast(f.rest, weight_dtype), double(f.denominator))};
}

/// The bits behind the point of weights that fit 16 bits with a sign: one less where one of them is 1.
int weight_bits(int64_t in, int64_t out, bool align_corners) {
  const int64_t denominator = denominator_of(out, align_corners);
  for (int64_t i = 0; i < out; ++i) {
    const int64_t numerator = align_corners ? i * (in - 1) : std::max<int64_t>((2 * i + 1) * in - out, 0), rest = numerator % denominator;
    if (double(std::max(rest, denominator - rest)) / double(denominator) >= 1 - 0x1p-16) return 14;
  }
  return 15;
}

/// The scale and the products are rounded to float32, as PyTorch's are: it decides where outputs lie on a border.
UOp nearest_positions(int64_t in, int64_t out, bool middle) {
  const Expr i = tinygrad::cast(iota(out), DType::float32);
  const Expr position = (middle ? i + 0.5 : i) * double(float(in) / float(out));
  return minimum(tinygrad::cast(position, index_dtype(in)), in - 1);
}

/// A vector laid along an axis.
UOp along(const UOp& x, size_t axis, size_t rank) {
  Shape shape(rank, SInt(1));
  shape[axis] = -1;
  return ops::reshape(x, shape);
}

UOp linear_along(const UOp& x, size_t axis, int64_t out, bool align_corners) {
  const Shape& in = shape_of(x);
  const DType work = is_float(x.dtype()) ? sum_acc_dtype(x.dtype()) : DType::float32;
  const Positions p = linear_positions(in[axis].value(), out, align_corners, work);
  const Expr weight = along(p.weight, axis, in.size());
  // Floats before they are gathered: their gradients then add up in that dtype.
  const UOp v = is_float(x.dtype()) ? tinygrad::cast(x, work) : x;
  const UOp low = tinygrad::cast(gather_rows(v, int(axis), p.low), work), high = tinygrad::cast(gather_rows(v, int(axis), p.high), work);
  const UOp y = low * (1 - weight) + high * weight;
  return y;
}

/// Bytes with weights of 16 bits, rounded along each axis, as PyTorch has them.
UOp linear_bytes_along(const UOp& x, size_t axis, int64_t out, bool align_corners) {
  const Shape& in = shape_of(x);
  if (in[axis] == out) return x;
  const Fractions f = linear_fractions(in[axis].value(), out, align_corners);
  const int bits = weight_bits(in[axis].value(), out, align_corners);
  const auto fixed = [&](const Expr& part) {
    const Expr rounded = div(part * (int64_t{2} << bits) + f.denominator, 2 * f.denominator, Rounding::trunc);
    return Expr(along(tinygrad::cast(rounded, DType::int32), axis, in.size()));
  };
  const Expr rest = tinygrad::cast(f.rest, DType::int64);
  const UOp low = tinygrad::cast(gather_rows(x, int(axis), f.low), DType::int32),
            high = tinygrad::cast(gather_rows(x, int(axis), f.high), DType::int32);
  const UOp y = low * fixed(f.denominator - rest) + high * fixed(rest) + (int64_t{1} << (bits - 1));
  return tinygrad::cast(rshift(y, bits), DType::uint8);
}

void check(const UOp& x, std::span<const int64_t> size, const InterpolateOptions& options) {
  const Shape& in = shape_of(x);
  if (size.empty() || size.size() > in.size())
    throw ValueError(fmt::format("interpolate: {} sizes for the last axes of {}, expects 1 to {}", size.size(), to_string(in), in.size()));
  if (std::any_of(size.begin(), size.end(), [](int64_t s) { return s < 1; }))
    throw ValueError(fmt::format("interpolate: the size ({}), expects at least 1 an axis", fmt::join(size, ", ")));
  for (size_t a = in.size() - size.size(); a < in.size(); ++a)
    if (!in[a].known() || in[a] == 0)
      throw ShapeError(
          fmt::format("interpolate: axis {} of {} is to be resized and must have a known size of at least 1", a, to_string(in)));
  if (options.align_corners && options.mode != Interpolation::linear)
    throw ValueError("interpolate: align_corners is for the mode linear only");
}

}  // namespace

Interpolation interpolation_named(std::string_view name) {
  if (name == "linear") return Interpolation::linear;
  if (name == "nearest") return Interpolation::nearest;
  if (name == "nearest-exact") return Interpolation::nearest_exact;
  throw ValueError(fmt::format("interpolate: the mode \"{}\", expects linear, nearest or nearest-exact", name));
}

UOp interpolate(const UOp& x, std::span<const int64_t> size, const InterpolateOptions& options) {
  check(x, size, options);
  const Shape& in = shape_of(x);
  UOp y = x;
  for (size_t k = size.size(); k-- > 0;) {
    const size_t axis = in.size() - size.size() + k;
    if (options.mode == Interpolation::linear)
      y = (x.dtype() == DType::uint8 ? linear_bytes_along : linear_along)(y, axis, size[k], options.align_corners);
    else
      y = gather_rows(y, int(axis), nearest_positions(in[axis].value(), size[k], options.mode == Interpolation::nearest_exact));
  }
  return tinygrad::cast(y, x.dtype());
}

}  // namespace tinygrad::ops
