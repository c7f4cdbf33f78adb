#include "ops/reduce.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/known.h"
#include "ops/movement.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

bool listed(const Axes& axes, size_t axis) { return std::find(axes.begin(), axes.end(), int(axis)) != axes.end(); }

Shape reduced_shape(const Shape& in, const Axes& axes, bool keepdim) {
  Shape out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!listed(axes, i))
      out.push_back(in[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

/// REDUCE over the axes that have more than one element; the others only disappear.
UOp reduce_axes(Op op, const UOp& x, const Axes& axes, bool keepdim) {
  const Shape& in = shape_of(x);
  Axes real;
  for (int a : axes)
    if (!(in[size_t(a)] == 1)) real.push_back(a);
  return ops::reshape(real.empty() ? x : tinygrad::reduce(op, x, real), reduced_shape(in, axes, keepdim));
}

SInt count_of(const Shape& in, const Axes& axes) {
  SInt n = 1;
  for (int a : axes) n *= in[size_t(a)];
  return n;
}

bool is_narrow(DType d) { return is_float(d) && bitsize(d) <= 16; }

/// What n elements are added up in: 32 bits where the sum surely fits them, which most processors add faster.
DType accumulated_in(DType d, const SInt& n) {
  if (is_float(d)) return sum_acc_dtype(d);
  const double most = is_bool(d) ? 1 : std::ldexp(1.0, bitsize(d));
  return is_int(d) || is_bool(d) ? (most * double(n.max()) < 0x1p31 ? DType::int32 : total_dtype(d)) : d;
}

/// The value as at least float32, for means.
UOp to_wide_float(const UOp& x) { return tinygrad::cast(x, is_float(x.dtype()) ? sum_acc_dtype(x.dtype()) : DType::float32); }

}  // namespace

DType total_dtype(DType d) { return is_float(d) || d == DType::index || d == DType::uint64 ? d : DType::int64; }

Axes ReduceAxes::resolve(std::string_view op, size_t rank) const {
  Axes out;
  if (!axes_) {
    for (size_t i = 0; i < rank; ++i) out.push_back(int(i));
    return out;
  }
  // A scalar counts as having one axis, as in tinygrad and PyTorch.
  if (rank == 0) {
    resolve_axes(op, *axes_, 1);
    return {};
  }
  out = resolve_axes(op, *axes_, rank);
  std::sort(out.begin(), out.end());
  return out;
}

UOp sum(const UOp& x, const ReduceAxes& axes, bool keepdim, std::optional<DType> dtype) {
  const Axes a = axes.resolve("sum", rank_of(x));
  const DType acc = dtype.value_or(accumulated_in(x.dtype(), count_of(shape_of(x), a)));
  return tinygrad::cast(reduce_axes(Op::ADD, tinygrad::cast(x, acc), a, keepdim), dtype.value_or(total_dtype(x.dtype())));
}

UOp count(const UOp& mask, const ReduceAxes& axes, bool keepdim) {
  const SInt n = count_of(shape_of(mask), axes.resolve("sum", rank_of(mask)));
  return sum(mask, axes, keepdim, index_dtype(n + 1));
}

UOp prod(const UOp& x, const ReduceAxes& axes, bool keepdim, std::optional<DType> dtype) {
  const DType acc = dtype.value_or(is_narrow(x.dtype()) ? DType::float32 : total_dtype(x.dtype()));
  const UOp y = reduce_axes(Op::MUL, tinygrad::cast(x, acc), axes.resolve("prod", rank_of(x)), keepdim);
  return dtype ? y : tinygrad::cast(y, total_dtype(x.dtype()));
}

Axes not_empty_axes(std::string_view op, const UOp& x, const ReduceAxes& axes) {
  const Shape& in = shape_of(x);
  const Axes out = axes.resolve(op, in.size());
  for (int a : out)
    if (in[size_t(a)] == 0)
      throw ValueError(fmt::format("{}: axis {} of {} has no elements, so none is the greatest or the least", op, a, to_string(in)));
  return out;
}

UOp max(const UOp& x, const ReduceAxes& axes, bool keepdim) { return reduce_axes(Op::MAX, x, axes.resolve("max", rank_of(x)), keepdim); }
UOp min(const UOp& x, const ReduceAxes& axes, bool keepdim) {
  return inverse(reduce_axes(Op::MAX, inverse(x), axes.resolve("min", rank_of(x)), keepdim));
}
UOp any(const UOp& x, const ReduceAxes& axes, bool keepdim) {
  return reduce_axes(Op::OR, tinygrad::cast(x, DType::bool_), axes.resolve("any", rank_of(x)), keepdim);
}
UOp all(const UOp& x, const ReduceAxes& axes, bool keepdim) {
  return reduce_axes(Op::AND, tinygrad::cast(x, DType::bool_), axes.resolve("all", rank_of(x)), keepdim);
}

UOp mean(const UOp& x, const ReduceAxes& axes, bool keepdim) {
  const Axes a = axes.resolve("mean", rank_of(x));
  const UOp total = sum(is_float(x.dtype()) ? to_wide_float(x) : x, a, keepdim);
  return tinygrad::cast(div(to_wide_float(total), count_of(shape_of(x), a)), is_float(x.dtype()) ? x.dtype() : DType::float32);
}

namespace {

/// The variance in at least float32.
UOp wide_var(const UOp& x, const ReduceAxes& axes, bool keepdim, int64_t correction) {
  const Axes a = axes.resolve("var", rank_of(x));
  const UOp v = to_wide_float(x);
  const UOp squares = square(sub(v, mean(v, a, true)));
  const SInt n = max(count_of(shape_of(x), a) - correction, SInt(0));
  return div(sum(squares, a, keepdim), n);
}

/// The root of a sum of squares, whose gradient is 0 where all of them are.
UOp root(const UOp& x) { return known("root", sqrt(x), x); }

}  // namespace

UOp var(const UOp& x, const ReduceAxes& axes, bool keepdim, int64_t correction) {
  return tinygrad::cast(wide_var(x, axes, keepdim, correction), least_upper_float(x.dtype(), DType::float32));
}

UOp std_dev(const UOp& x, const ReduceAxes& axes, bool keepdim, int64_t correction) {
  return tinygrad::cast(root(wide_var(x, axes, keepdim, correction)), least_upper_float(x.dtype(), DType::float32));
}

namespace {

UOp first_greatest(std::string_view op, const UOp& x, std::optional<int> axis, bool keepdim) {
  const size_t rank = rank_of(x);
  if (!axis || rank == 0) {
    if (axis) resolve_axis(op, *axis, 1);
    const UOp flat = first_greatest(op, ops::flatten(x), 0, false);
    return keepdim ? ops::reshape(flat, Shape(rank, SInt(1))) : flat;
  }
  const int a = not_empty_axes(op, x, *axis)[0];
  const SInt& n = shape_of(x)[size_t(a)];
  // From memory: computed at two places, the greatest element could be rounded differently and equal none.
  const UOp v = contiguous(x);
  Expr best = ops::eq(v, ops::max(v, a, true));
  if (is_float(x.dtype())) best = best | isnan(v);  // the maximum is NaN if any element is
  // The greatest of n, n-1, ..., 1 over the best elements is at the first of them.
  const UOp from_end = sub(n, iota_along(a, rank, n));
  return tinygrad::cast(sub(n, ops::max(ops::where(best, from_end, 0), a, keepdim)), index_dtype(n));
}

}  // namespace

UOp argmax(const UOp& x, std::optional<int> axis, bool keepdim) { return first_greatest("argmax", x, axis, keepdim); }
UOp argmin(const UOp& x, std::optional<int> axis, bool keepdim) { return first_greatest("argmin", inverse(x), axis, keepdim); }

UOp logsumexp(const UOp& x, const ReduceAxes& axes, bool keepdim, const OpsContext& ctx) {
  const Axes a = axes.resolve("logsumexp", rank_of(x));
  return in_float32(x, ctx, [&](const Expr& v) {
    const UOp greatest = detach(ops::max(v, a, true));
    const UOp m = ops::where(isinf(greatest), 0, greatest);  // inf - inf is NaN
    return Expr(log(sum(exp(v - m), a, keepdim))) + ops::reshape(m, reduced_shape(shape_of(v), a, keepdim));
  });
}

namespace {

/// The p-norm over an axis. Where it is 0 it has the gradient 0.
UOp norm_along(const UOp& v, double p, int a) {
  if (p == 0) return tinygrad::cast(sum(ops::ne(v, 0), a, true), v.dtype());
  if (p == 2) return root(sum(square(v), a, true));
  if (std::isinf(p)) return p > 0 ? ops::max(abs(v), a, true) : ops::min(abs(v), a, true);
  const UOp total = sum(pow(abs(v), p), a, true), none = ops::eq(total, 0);
  return ops::where(none, p > 0 ? 0.0 : std::numeric_limits<double>::infinity(), pow(ops::where(none, 1, total), 1 / p));
}

}  // namespace

UOp normalize(const UOp& x, double p, int axis, double eps, const OpsContext& ctx) {
  const int a = resolve_axis("normalize", axis, rank_of(x));
  if (std::isnan(p)) throw ValueError("normalize: the norm's p is NaN");
  return in_float32(x, ctx, [&](const Expr& v) { return v / maximum(norm_along(v, p, a), eps); });
}

UOp allclose(const UOp& a, const UOp& b, double rtol, double atol, bool equal_nan) {
  return all(isclose(a, b, {.rtol = rtol, .atol = atol, .equal_nan = equal_nan}));
}

namespace {

struct Shifted {
  Expr x, exp, sum;
  DType result;  ///< the dtype that results are rounded to
};

/// x - max(x), its exponentials and their sum, in at least float32.
Shifted shifted(const UOp& x, const Axes& axes, std::optional<DType> dtype, const OpsContext& ctx) {
  if (dtype && !is_float(*dtype)) throw DTypeError(fmt::format("softmax: computed in {}, expects a float", repr(*dtype)));
  const UOp given = dtype ? tinygrad::cast(x, *dtype) : to_float(x, ctx), v = to_float32(given);
  const UOp m = sub(v, detach(ops::max(v, axes, true)));
  const UOp e = exp(m);
  return {m, e, sum(e, axes, true), given.dtype()};
}

}  // namespace

UOp softmax(const UOp& x, const ReduceAxes& axes, std::optional<DType> dtype, const OpsContext& ctx) {
  const Shifted s = shifted(x, axes.resolve("softmax", rank_of(x)), dtype, ctx);
  return tinygrad::cast(s.exp * reciprocal(s.sum), s.result);
}
UOp log_softmax(const UOp& x, const ReduceAxes& axes, std::optional<DType> dtype, const OpsContext& ctx) {
  const Shifted s = shifted(x, axes.resolve("log_softmax", rank_of(x)), dtype, ctx);
  return tinygrad::cast(s.x - log(s.sum), s.result);
}
UOp masked_softmax(const UOp& x) {
  const UOp v = to_float32(x);
  const double lowest = v.dtype() == DType::float64 ? std::numeric_limits<double>::lowest() : double(std::numeric_limits<float>::lowest());
  const Expr e = exp(sub(v, maximum(detach(ops::max(v, -1, true)), lowest))), total = sum(e, -1, true);
  return tinygrad::cast(e * reciprocal(ops::where(ops::eq(total, 0), 1, total)), x.dtype());
}
UOp softmin(const UOp& x, const ReduceAxes& axes, std::optional<DType> dtype, const OpsContext& ctx) {
  return softmax(neg(to_float(x, ctx)), axes, dtype, ctx);
}

}  // namespace tinygrad::ops
