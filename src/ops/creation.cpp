#include "ops/creation.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <cmath>
#include <limits>

#include "ops/expr.h"
#include "ops/movement.h"
#include "shape/device.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// A number as a constant that lives on the context's device.
UOp placed_constant(const Scalar& value, const OpsContext& ctx) { return UOp(Op::CONST, value.dtype(), {}, ConstArg{value, ctx.device}); }

bool holds(DType dtype, double value) {
  if (!is_int(dtype)) return true;
  return value >= min_value(dtype).as_double() && value <= max_value(dtype).as_double();
}

UOp full_of(const Shape& shape, const UOp& value) {
  for (const SInt& s : shape)
    if (surely_less(s, 0)) throw ShapeError(fmt::format("full: {} has a negative size", to_string(shape)));
  return broadcast_to(value, shape);
}

/// ceil((stop - start) / step), at least 0 and less than 2^63.
int64_t arange_length(const Scalar& start, const Scalar& stop, const Scalar& step, bool ints) {
  if (!ints) return std::max<int64_t>(0, int64_t(std::ceil((stop.as_double() - start.as_double()) / step.as_double())));
  const auto is_huge = [](const Scalar& s) { return is_unsigned(s.dtype()) && s.as_int() < 0; };  // 2^63 and more
  const auto less = [&](const Scalar& a, const Scalar& b) { return is_huge(a) == is_huge(b) ? a.as_int() < b.as_int() : is_huge(b); };
  const bool up = is_huge(step) || step.as_int() > 0;
  if (!(up ? less(start, stop) : less(stop, start))) return 0;
  const auto difference = [](const Scalar& a, const Scalar& b) { return uint64_t(a.as_int()) - uint64_t(b.as_int()); };
  const uint64_t span = up ? difference(stop, start) : difference(start, stop);
  const uint64_t by = up ? uint64_t(step.as_int()) : 0 - uint64_t(step.as_int());
  return int64_t((span - 1) / by + 1);
}

DType arange_dtype(double first, double last, bool ints, const OpsContext& ctx) {
  if (!ints) return ctx.default_float;
  return holds(ctx.default_int, first) && holds(ctx.default_int, last) ? ctx.default_int : DType::int64;
}

UOp triangle(const UOp& x, const SInt& diagonal, bool upper) {
  const Shape& shape = shape_of(x);
  if (shape.size() < 2) throw ShapeError(fmt::format("{}: expects at least two axes, got {}", upper ? "triu" : "tril", to_string(shape)));
  const SInt &rows = shape[shape.size() - 2], &columns = shape[shape.size() - 1];
  const UOp above = le(add(iota_along(0, 2, rows), Operand::number_of(upper ? diagonal : diagonal + 1)), iota_along(1, 2, columns));
  const UOp zero = as_node(0, x.dtype());
  return upper ? ops::where(above, x, zero) : ops::where(above, zero, x);
}

}  // namespace

DType index_dtype(const SInt& n, DType dtype) { return n.max() - 1 > max_value(dtype).as_int() ? DType::int64 : dtype; }

UOp iota(const SInt& n, DType dtype, const OpsContext& ctx) {
  if (!is_int(dtype)) throw DTypeError(fmt::format("iota: expects an integer dtype, got {}", repr(dtype)));
  if (dtype == DType::int32 && n.max() > std::numeric_limits<int32_t>::max()) dtype = DType::int64;
  return UOp(Op::IOTA, dtype, {n.uop()}, DeviceArg{ctx.device});
}

UOp iota_along(int axis, size_t rank, const SInt& n, DType dtype, const OpsContext& ctx) {
  Shape shape(rank, SInt(1));
  shape[size_t(resolve_axis("iota", axis, rank))] = n;
  return ops::reshape(iota(n, dtype, ctx), shape);
}

UOp full(const Shape& shape, const Operand& value, std::optional<DType> dtype, const OpsContext& ctx) {
  if (value.is_weak() && !value.is_number()) {  // of no device: beside a constant that has one
    const UOp size = as_node(value, dtype.value_or(as_node(value, ctx).dtype()));
    return full_of(shape, alu(Op::ADD, {size, placed_constant(Scalar::of(int64_t{0}).cast(size.dtype()), ctx)}));
  }
  if (!value.is_number()) return full_of(shape, dtype ? tinygrad::cast(value.node(), *dtype) : value.node());
  if (dtype) return full_of(shape, placed_constant(checked_cast(value.number(), *dtype, "full"), ctx));
  return full_of(shape, placed_constant(*const_value(as_node(value, ctx)), ctx));
}

UOp zeros(const Shape& shape, std::optional<DType> dtype, const OpsContext& ctx) { return full(shape, 0.0, dtype, ctx); }
UOp ones(const Shape& shape, std::optional<DType> dtype, const OpsContext& ctx) { return full(shape, 1.0, dtype, ctx); }

UOp full_like(const UOp& x, const Operand& value, std::optional<DType> dtype) {
  const Devices devices = devices_of(x);
  const OpsContext ctx{.device = devices.are_several() ? Symbol() : devices.only()};
  const UOp out = full(shape_of(x), value, dtype.value_or(x.dtype()), ctx);
  return devices.are_several() ? UOp(Op::SHARD, out.dtype(), {out}, ShardingArg{devices, {}}) : out;
}
UOp zeros_like(const UOp& x, std::optional<DType> dtype) { return full_like(x, 0, dtype); }
UOp ones_like(const UOp& x, std::optional<DType> dtype) { return full_like(x, 1, dtype); }

UOp arange(const Scalar& start, const Scalar& stop, const Scalar& step, std::optional<DType> dtype, const OpsContext& ctx) {
  const bool ints = !is_float(start.dtype()) && !is_float(stop.dtype()) && !is_float(step.dtype());
  if (step.is_zero() || step.is_nan()) throw ValueError("arange: the step is 0 or NaN");
  if (!(std::abs((stop.as_double() - start.as_double()) / step.as_double()) < 0x1p62))
    throw ValueError(fmt::format("arange: {} to {} by {} has no number of elements that could be counted", start.as_double(),
                                 stop.as_double(), step.as_double()));
  const int64_t n = arange_length(start, stop, step, ints);
  const double first = start.as_double(), last = first + double(n - 1) * step.as_double();
  const DType out = dtype.value_or(arange_dtype(first, last, ints, ctx));
  if (n == 0) return full(Shape{0}, 0, out, ctx);
  if (!holds(out, first) || !holds(out, last)) throw ValueError(fmt::format("arange: {} does not hold {} to {}", repr(out), first, last));
  // Wide enough for the arithmetic, then cast: positions of floats are counted in integers, so that they do not add up rounding.
  const DType work = ints                                 ? (is_int(out) && bitsize(out) >= 32 ? out : DType::int64)
                     : is_float(out) && bitsize(out) > 16 ? out
                                                          : DType::float32;
  const UOp position = tinygrad::cast(iota(n, ints ? work : DType::int32, ctx), work);
  const Scalar by = step.cast(work), from = start.cast(work);
  UOp y = by.is_one() ? position : mul(position, constant(by));
  if (!from.is_zero()) y = add(y, constant(from));
  return tinygrad::cast(y, out);
}

UOp arange(const SInt& stop, std::optional<DType> dtype, const OpsContext& ctx) {
  if (stop.known()) return arange(Scalar::of(int64_t{0}), Scalar::of(stop.value()), Scalar::of(int64_t{1}), dtype, ctx);
  return tinygrad::cast(iota(stop, ctx.default_int, ctx), dtype.value_or(ctx.default_int));
}

UOp arange(const SInt& start, const SInt& stop, int64_t step, std::optional<DType> dtype, const OpsContext& ctx) {
  if (start.known() && stop.known()) return arange(Scalar::of(start.value()), Scalar::of(stop.value()), Scalar::of(step), dtype, ctx);
  if (step == 0) throw ValueError("arange: the step is 0");
  SInt n = step > 0 ? ceil_div(stop - start, step) : ceil_div(start - stop, -step);
  if (n.min() < 0) n = max(n, SInt(0));
  const UOp y = add(mul(iota(n, ctx.default_int, ctx), step), Operand::number_of(start));
  return tinygrad::cast(y, dtype.value_or(ctx.default_int));
}

UOp linspace(double start, double stop, int64_t steps, std::optional<DType> dtype, const OpsContext& ctx) {
  if (steps < 0) throw ValueError(fmt::format("linspace: {} steps, expects at least 0", steps));
  const DType out = dtype.value_or(ctx.default_float);
  if (is_bool(out)) throw DTypeError("linspace: got dtypes.bool, expects a number");
  if (steps <= 1) return full(Shape{steps}, start, out, ctx);
  const DType work = is_float(out) ? least_upper_dtype(out, DType::float32) : least_upper_float(out, ctx.default_float);
  const UOp position = tinygrad::cast(iota(steps, DType::int32, ctx), work);
  return tinygrad::cast(add(mul(position, (stop - start) / double(steps - 1)), start), out);
}

UOp eye(const SInt& n, std::optional<SInt> m, std::optional<DType> dtype, const OpsContext& ctx) {
  const SInt& columns = m ? *m : n;
  if (surely_less(n, 0) || surely_less(columns, 0))
    throw ValueError(fmt::format("eye: negative size ({}, {})", to_string(n), to_string(columns)));
  const UOp diagonal = ops::eq(iota_along(0, 2, n, DType::int32, ctx), iota_along(1, 2, columns, DType::int32, ctx));
  return tinygrad::cast(diagonal, dtype.value_or(ctx.default_float));
}

UOp triu(const UOp& x, const SInt& diagonal) { return triangle(x, diagonal, true); }
UOp tril(const UOp& x, const SInt& diagonal) { return triangle(x, diagonal, false); }

}  // namespace tinygrad::ops
