// Running reductions.
#include <algorithm>
#include <limits>

#include "ops/creation.h"
#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/order.h"
#include "ops/reduce.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// A reduction as a pair: over an axis and of two values, with its identity.
struct Combine {
  UOp (*over_last)(const UOp&);
  UOp (*two)(const Operand&, const Operand&, const OpsContext&);
  Scalar (*identity)(DType);
};

constexpr Combine sums{[](const UOp& x) { return sum(x, -1, false, x.dtype()); }, add, [](DType d) { return Scalar::of(0, d); }};
constexpr Combine products{[](const UOp& x) { return prod(x, -1, false, x.dtype()); }, mul, [](DType d) { return Scalar::of(1, d); }};
constexpr Combine maxima{[](const UOp& x) { return ops::max(x, -1); }, maximum, min_value};

/// True where j <= i, of shape (n, n) over (i, j).
UOp up_to(const SInt& n) { return le(iota_along(1, 2, n), iota_along(0, 2, n)); }

/// Element i of the last axis combines those up to i: n^2 steps.
UOp scan_whole(const UOp& x, const Combine& c) {
  const UOp pairs = ops::where(up_to(shape_of(x).back()), ops::unsqueeze(x, -2), constant(c.identity(x.dtype())));
  return c.over_last(pairs);
}

/// Longer axes in pieces, each on top of all before it.
UOp scan_last(const UOp& x, const Combine& c) {
  constexpr int64_t piece = 256;
  const SInt n = shape_of(x).back();
  if (!n.known() || n.value() <= 2 * piece) return scan_whole(x, c);
  const Operand identity = c.identity(x.dtype());
  const SInt padded = ceil_div(n, piece) * SInt(piece);
  const UOp within = scan_whole(ops::unflatten(pad_axis(x, -1, 0, padded - n, identity), -1, Shape{-1, piece}), c);
  const UOp totals = ops::squeeze(shrink_axis(within, -1, piece - 1, piece), -1);
  const UOp before = pad_axis(scan_last(totals, c), -1, 1, -1, identity);
  return shrink_axis(ops::flatten(c.two(within, ops::unsqueeze(before, -1), {}), -2, -1), -1, 0, n);
}

UOp scan(std::string_view op, const UOp& x, int axis, const Combine& c) {
  const Shape& in = shape_of(x);
  const int a = resolve_axis(op, axis, std::max<size_t>(in.size(), 1));  // a scalar counts as having one
  if (in.empty()) return x;
  if (numel(in) == 0) return x;
  return ops::transpose(scan_last(ops::transpose(x, a, -1), c), a, -1);
}

}  // namespace

UOp cumsum(const UOp& x, int axis, std::optional<DType> dtype) {
  const DType acc = dtype.value_or(is_float(x.dtype()) ? sum_acc_dtype(x.dtype()) : total_dtype(x.dtype()));
  const UOp y = scan("cumsum", tinygrad::cast(x, acc), axis, sums);
  return is_float(x.dtype()) && !dtype ? tinygrad::cast(y, x.dtype()) : y;
}

UOp cumprod(const UOp& x, int axis) {
  if (!is_float(x.dtype())) return scan("cumprod", tinygrad::cast(x, total_dtype(x.dtype())), axis, products);
  return in_float32(x, {}, [&](const Expr& v) { return scan("cumprod", v, axis, products); });
}

ValuesAndIndices cummax(const UOp& x, int axis) {
  if (rank_of(x) == 0) return {x, constant(DType::int32, 0)};
  const int a = resolve_axis("cummax", axis, rank_of(x));
  const UOp stored = contiguous(x);  // computed at two places, an element could be rounded differently and not equal itself
  const UOp values = scan("cummax", stored, axis, maxima);
  const UOp xt = ops::transpose(stored, a, -1), vt = ops::transpose(values, a, -1);
  const SInt& n = shape_of(xt).back();
  const UOp reached = bitwise_and(same(ops::unsqueeze(xt, -2), ops::unsqueeze(vt, -1)), up_to(n));
  const UOp last = ops::max(ops::where(reached, iota(n), 0), -1);
  return {values, ops::transpose(tinygrad::cast(last, index_dtype(n)), a, -1)};
}

ValuesAndIndices cummin(const UOp& x, int axis) {
  const auto [values, indices] = cummax(inverse(x), axis);
  return {inverse(values), indices};
}

UOp logcumsumexp(const UOp& x, int axis, const OpsContext& ctx) {
  if (rank_of(x) == 0) return to_float(x, ctx);
  const int a = resolve_axis("logcumsumexp", axis, rank_of(x));
  const UOp t = ops::transpose(to_float32(x, ctx), a, -1);
  const UOp greatest = detach(scan("logcumsumexp", t, -1, maxima));
  const UOp m = ops::where(isinf(greatest), 0, greatest);
  const double none = -std::numeric_limits<double>::infinity();
  const UOp terms = ops::where(up_to(shape_of(t).back()), sub(ops::unsqueeze(t, -2), ops::unsqueeze(m, -1)), none);
  return tinygrad::cast(ops::transpose(add(log(sum(exp(terms), -1)), m), a, -1), to_float(x, ctx).dtype());
}

}  // namespace tinygrad::ops
