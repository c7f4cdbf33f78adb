#include "ops/linalg.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <bit>

#include "ops/expr.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/nn.h"
#include "ops/reduce.h"
#include "ops/rows.h"
#include "ops/steps.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// A batch of matrices in a dtype to compute with.
struct Matrices {
  UOp values;
  int64_t rows = 0, columns = 0;
  DType result = DType::float32;  ///< the dtype that results are rounded to
};

UOp transposed(const UOp& x) { return ops::transpose(x, -1, -2); }

void check_axes(std::string_view op, const UOp& x) {
  if (rank_of(x) < 2) throw ShapeError(fmt::format("{}: expects at least two axes, rows and columns, got {}", op, to_string(shape_of(x))));
}

Matrices matrices(std::string_view op, const UOp& x, const OpsContext& ctx) {
  check_axes(op, x);
  const Shape& shape = shape_of(x);
  const SInt &rows = shape[shape.size() - 2], &columns = shape.back();
  if (!rows.known() || !columns.known())
    throw ShapeError(fmt::format("{}: the number of steps depends on rows and columns, which must be known, got {}", op, to_string(shape)));
  const UOp v = to_float(x, ctx);
  return {tinygrad::cast(v, sum_acc_dtype(v.dtype())), rows.value(), columns.value(), v.dtype()};
}

UOp columns_of(const UOp& x, const SInt& begin, const SInt& end) { return shrink_axis(x, -1, begin, end); }

/// The identity beside each matrix of x's batch.
UOp identities(const UOp& x, int64_t n) {
  Shape shape = shape_of(x);
  shape[shape.size() - 2] = shape.back() = n;
  return broadcast_to(eye(n, {}, x.dtype()), shape);
}

/// The matrices reflected so that column k (a vector of one) becomes zero below row k. Where it is zero there already nothing changes.
UOp reflected(const UOp& m, const UOp& k) {
  const UOp row = iota_along(-2, 2, shape_of(m)[rank_of(m) - 2]), at = ops::reshape(k, Shape{1, 1});
  const UOp column = gather_rows(m, -1, k);
  // Divided by its greatest element, so that squares stay in range.
  const UOp greatest = detach(ops::max(ops::where(ge(row, at), abs(column), 0), -2, true));
  const UOp changes = ops::ne(ops::max(ops::where(gt(row, at), abs(column), 0), -2, true), 0);
  const Expr x = div(ops::where(ge(row, at), column, 0), ops::where(changes, greatest, 1));
  const Expr norm = sqrt(ops::where(changes, sum(square(x), -2, true), 1));
  const Expr head = gather_rows(x, -2, k);
  const Expr mirror = ops::where(ops::eq(row, at), head + ops::where(head < 0, -norm, norm), x);
  const Expr scale = ops::where(changes, reciprocal(norm * (norm + abs(head))), 0);
  return Expr(m) - mirror * (scale * sum(mul(mirror, m), -2, true));
}

/// q and r of matrices in a dtype to compute with.
QR qr_of(const UOp& x, int64_t rows, int64_t columns) {
  // The reflections that make r of x make the transpose of q of the identity.
  UOp both = cat(UOps{x, identities(x, rows)}, -1);
  for (const UOp& k : step_numbers(std::min(rows - 1, columns))) both = contiguous(reflected(both, k));
  return {transposed(columns_of(both, columns, columns + rows)), triu(columns_of(both, 0, columns))};
}

struct Rotation {
  Expr cosine, sine;
};

/// What makes the pairs of columns orthogonal (Golub and Van Loan, "Matrix Computations", 8.6.3): tan(t) is the lesser root of
/// tan^2 + tan * (bb - aa) / ab - 1 = 0 for the inner products aa, bb, ab.
Rotation rotation(const UOp& a, const UOp& b) {
  const Expr aa = sum(square(a), -2, true), bb = sum(square(b), -2, true), ab = sum(mul(a, b), -2, true);
  // Both are scaled to the size of 1, so that squares stay in range. They are 0 for columns of zeros, which stay.
  const Expr size = aa + bb, safe = ops::where(ops::ne(size, 0), size, 1);
  const Expr difference = (bb - aa) / safe, twice = ab * 2 / safe;
  const Expr squares = difference * difference + twice * twice;
  const UOp turns = ops::ne(squares, 0);
  const Expr denominator = Expr(abs(difference)) + sqrt(ops::where(turns, squares, 1));
  // One angle for all rows: for columns of like lengths it depends on how the sums were rounded.
  const Expr tangent = contiguous(ops::where(turns, Expr(ops::where(difference < 0, -twice, twice)) / denominator, 0));
  const Expr cosine = rsqrt(tangent * tangent + 1);
  return {cosine, cosine * tangent};
}

/// Column i and column n - 1 - i, an even number of them, made orthogonal in their first `rows` elements; then all but column 0 go on by
/// one, so that n - 1 steps pair each with each and leave them in place.
UOp jacobi_step(const UOp& x, int64_t rows) {
  const SInt n = shape_of(x).back();
  const int64_t half = n.value() / 2;
  const Expr a = columns_of(x, 0, half), b = ops::flip(columns_of(x, half, n), {-1});
  const Rotation r = rotation(shrink_axis(a, -2, 0, rows), shrink_axis(b, -2, 0, rows));
  const UOp left = r.cosine * a - r.sine * b, right = r.sine * a + r.cosine * b;
  return contiguous(cat(
      UOps{columns_of(left, 0, 1), columns_of(right, 0, 1), columns_of(left, 1, half), ops::flip(columns_of(right, 1, half), {-1})}, -1));
}

struct Orthogonalized {
  UOp columns;    ///< x turned: its columns are orthogonal, the longest first
  UOp turned_by;  ///< orthogonal
  UOp lengths;
};

/// Square matrices multiplied from the right by rotations.
Orthogonalized orthogonalized(const UOp& x, int64_t n) {
  UOp both = cat(UOps{x, identities(x, n)}, -2);
  if (n > 1) {
    both = pad_axis(both, -1, 0, n % 2);  // columns of zeros stay so
    const int64_t sweeps = int64_t(std::bit_width(uint64_t(n - 1))) + 3, steps = sweeps * (n + n % 2 - 1);
    for (int64_t i = 0; i < steps; ++i) both = jacobi_step(both, n);
    both = columns_of(both, 0, n);
  }
  // Squares of lengths, as the rotations have them; the length of zeros has no derivative.
  const UOp squares = sum(square(shrink_axis(both, -2, 0, n)), -2);
  const UOp positive = ops::ne(squares, 0);
  const UOp lengths = ops::where(positive, sqrt(ops::where(positive, squares, 1)), 0);
  const auto [sorted, order] = sort(lengths, -1, true);
  const UOp ordered = contiguous(gather(both, -1, broadcast_to(ops::unsqueeze(order, -2), shape_of(both))));
  return {shrink_axis(ordered, -2, 0, n), shrink_axis(ordered, -2, n, 2 * n), sorted};
}

/// Orthonormal columns in the directions of orthogonal ones, any where those are zero.
UOp directions(const UOp& columns, int64_t n) {
  const QR parts = qr_of(columns, n, n);
  const UOp along = diagonal(parts.r, 0, -2, -1);
  const UOp sign = ops::where(lt(along, 0), as_node(-1, columns.dtype()), 1);
  return mul(parts.q, ops::unsqueeze(sign, -2));
}

/// For at least as many rows as columns.
SVD svd_of(const UOp& x, int64_t rows, int64_t columns, bool full_matrices) {
  const QR parts = qr_of(x, rows, columns);
  // r = (turned_by lengths directions^T) by rotations of the columns of its transpose, which converge faster than those of its own.
  const Orthogonalized o = orthogonalized(transposed(shrink_axis(parts.r, -2, 0, columns)), columns);
  UOp u = matmul(columns_of(parts.q, 0, columns), o.turned_by);
  if (full_matrices && rows > columns) u = cat(UOps{u, columns_of(parts.q, columns, rows)}, -1);
  return {u, o.lengths, transposed(directions(o.columns, columns))};
}

}  // namespace

QR qr(const UOp& x, const OpsContext& ctx) {
  const Matrices m = matrices("qr", x, ctx);
  const QR parts = qr_of(m.values, m.rows, m.columns);
  return {tinygrad::cast(parts.q, m.result), tinygrad::cast(parts.r, m.result)};
}

SVD svd(const UOp& x, bool full_matrices, const OpsContext& ctx) {
  const Matrices m = matrices("svd", x, ctx);
  const bool wide = m.rows < m.columns;
  // Scaled to elements of at most 1: squares of what matters stay in range.
  const UOp greatest = m.rows * m.columns == 0 ? constant(m.values.dtype(), 1) : detach(ops::max(abs(m.values), {-2, -1}, true));
  const UOp scale = ops::where(ops::ne(greatest, 0), greatest, 1);
  const UOp scaled = div(wide ? transposed(m.values) : m.values, scale);
  const SVD parts = svd_of(scaled, std::max(m.rows, m.columns), std::min(m.rows, m.columns), full_matrices);
  auto rounded = [&](const UOp& v) { return tinygrad::cast(v, m.result); };
  const UOp s = rounded(mul(parts.s, rank_of(scale) == 0 ? scale : ops::squeeze(scale, -1)));
  if (wide) return {rounded(transposed(parts.vt)), s, rounded(transposed(parts.u))};
  return {rounded(parts.u), s, rounded(parts.vt)};
}

UOp newton_schulz(const UOp& x, int64_t steps, std::span<const double> params, double eps, const OpsContext& ctx) {
  check_axes("newton_schulz", x);
  if (params.empty()) throw ValueError("newton_schulz: got no parameters, expects at least one");
  if (steps < 0) throw ValueError(fmt::format("newton_schulz: {} steps, expects at least 0", steps));
  const Shape& shape = shape_of(x);
  // The products g g^T are of the lesser size.
  if (surely_less(shape.back(), shape[shape.size() - 2])) return transposed(newton_schulz(transposed(x), steps, params, eps, ctx));
  const UOp v = to_float(x, ctx);
  UOp g = in_float32(v, ctx, [&](const Expr& wide) { return wide / (Expr(sqrt(sum(square(wide), {-2, -1}, true))) + eps); });
  for (int64_t i = 0; i < steps; ++i) {
    const UOp products = matmul(g, transposed(g));
    UOp power = g, next = mul(g, params[0]);
    for (double p : params.subspan(1)) {
      power = matmul(products, power);
      next = add(next, mul(power, p));
    }
    g = next;
  }
  return g;
}

}  // namespace tinygrad::ops
