// Gathering and scattering by tensors of indices.
#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "ops/rows.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

void check_index(std::string_view op, const UOp& index) {
  if (!is_int(index.dtype())) throw DTypeError(fmt::format("{}: the index is {}, expects integers", op, repr(index.dtype())));
}

/// In a signed dtype that holds every value of its own and positions, so that comparing does not promote to floats.
UOp signed_index(const UOp& index) {
  const bool narrow = bitsize(index.dtype()) < 32 || index.dtype() == DType::int32;
  return tinygrad::cast(index, narrow ? DType::int32 : DType::int64);
}

/// Whether index (any shape) names position p, along a new last axis of n positions.
UOp names(const UOp& index, const SInt& n) {
  const UOp i = signed_index(index);
  return ops::eq(ops::unsqueeze(i, -1), iota(n, i.dtype()));
}

/// The axis moved to the end, 1 in its place.
UOp to_last(const UOp& x, int axis) { return ops::transpose(ops::unsqueeze(x, -1), -1, axis); }

void check_ranks(std::string_view op, const UOp& x, const UOp& index) {
  if (rank_of(x) != rank_of(index))
    throw ShapeError(fmt::format("{}: the index {} must have as many axes as {}", op, to_string(shape_of(index)), to_string(shape_of(x))));
}

/// Every size of index but that of the axis is at most x's.
void check_within(std::string_view op, const UOp& x, const UOp& index, int axis) {
  const Shape &xs = shape_of(x), &is = shape_of(index);
  for (size_t d = 0; d < xs.size(); ++d)
    if (int(d) != axis && surely_less(xs[d], is[d]))
      throw ShapeError(fmt::format("{}: the index {} is larger than {} in axis {}", op, to_string(is), to_string(xs), d));
}

}  // namespace

UOp gather_rows(const UOp& x, int axis, const UOp& index) {
  const Shape &xs = shape_of(x), &is = shape_of(index);
  const auto a = size_t(resolve_axis("gather", axis, xs.size()));
  check_index("gather", index);
  // x as (pre, 1, n, post), the match as (1, count, n, 1...).
  Shape with_one = xs, match_shape(xs.size() + 1, SInt(1)), out(xs.begin(), xs.begin() + a);
  with_one.insert(with_one.begin() + a, SInt(1));
  match_shape[a] = numel(is);
  match_shape[a + 1] = xs[a];
  out.append(is.begin(), is.end());
  out.append(xs.begin() + a + 1, xs.end());
  const UOp match = ops::reshape(names(ops::reshape(index, Shape{numel(is)}), xs[a]), match_shape);
  return ops::reshape(sum(ops::where(match, ops::reshape(x, with_one), 0), int(a) + 1, false, x.dtype()), out);
}

UOp scatter_rows(const UOp& x, int axis, const UOp& index, const UOp& rows) {
  const Shape &xs = shape_of(x), &is = shape_of(index);
  const auto a = size_t(resolve_axis("scatter", axis, xs.size()));
  const SInt count = numel(is);
  const UOp match = names(ops::reshape(index, Shape{count}), xs[a]);             // (count, n)
  const UOp last = ops::max(ops::where(match, iota_along(0, 2, count), -1), 0);  // (n)
  Shape flat(xs.begin(), xs.begin() + a), beside(xs.size(), SInt(1));
  flat.push_back(count);
  flat.append(xs.begin() + a + 1, xs.end());
  beside[a] = xs[a];
  const UOp values = gather_rows(ops::reshape(rows, flat), int(a), last);
  return ops::where(ops::reshape(ge(last, 0), beside), values, x);
}

UOp one_hot(const UOp& indices, const SInt& classes, DType dtype) {
  check_index("one_hot", indices);
  if (surely_less(classes, 0)) throw ValueError(fmt::format("one_hot: {} classes, expects at least 0", to_string(classes)));
  return tinygrad::cast(names(indices, classes), dtype);
}

UOp embedding(const UOp& weight, const UOp& indices) {
  if (rank_of(weight) != 2)
    throw ShapeError(fmt::format("embedding: the weight must be (rows, features), got {}", to_string(shape_of(weight))));
  return gather_rows(weight, 0, indices);
}

UOp gather(const UOp& x, int axis, const UOp& index) {
  check_ranks("gather", x, index);
  check_index("gather", index);
  const int a = resolve_axis("gather", axis, rank_of(x));
  check_within("gather", x, index, a);
  Shape sizes = shape_of(index);
  sizes[size_t(a)] = -1;
  // Over (index..., n): x with its axis moved to the end and 1 in its place.
  const UOp rows = to_last(shrink_to(x, sizes), a);
  return sum(ops::where(names(index, shape_of(x)[size_t(a)]), rows, 0), -1, false, x.dtype());
}

namespace {

/// What scattering combines, over (x's shape..., j): the sources and where they go. Both cover x: nothing goes to what index leaves out.
struct Incoming {
  UOp sources, goes;
};

Incoming incoming(const UOp& x, int axis, const UOp& index, const UOp& src) {
  check_ranks("scatter", x, index);
  check_ranks("scatter", src, index);
  check_index("scatter", index);
  check_within("scatter", x, index, axis);
  check_within("scatter", src, index, -1);
  const Shape& xs = shape_of(x);
  const SInt& n = xs[size_t(axis)];
  const UOp s = to_last(shrink_to(src, shape_of(index)), axis);  // (..., 1, ..., j)
  const UOp goes = ops::transpose(names(index, n), -1, axis);    // (..., n, ..., j)
  Shape covered = xs;
  covered.push_back(-1);
  covered[size_t(axis)] = -1;
  return {pad_to(s, covered), pad_to(goes, covered)};
}

UOp in_dtype_of(const UOp& x, const Operand& src, const UOp& index, std::string_view op) {
  if (src.is_number()) return full(shape_of(index), src, x.dtype());
  if (src.node().dtype() != x.dtype())
    throw DTypeError(fmt::format("{}: the source is {}, the target {}; cast one", op, repr(src.node().dtype()), repr(x.dtype())));
  return src.node();
}

}  // namespace

UOp scatter_reduce(const UOp& x, int axis, const UOp& index, const UOp& src, Scatter reduce, bool include_self) {
  const int a = resolve_axis("scatter_reduce", axis, rank_of(x));
  const auto [sources, goes] = incoming(x, a, index, in_dtype_of(x, src, index, "scatter_reduce"));
  auto combined = [&, s = sources, g = goes](auto&& over, auto&& two, const Scalar& identity) {
    const UOp in = over(ops::where(g, s, identity));
    const UOp self = include_self ? x : ops::where(any(g, -1), identity, x);
    return two(in, self, OpsContext{});
  };
  const Scalar zero = Scalar::of(0, x.dtype());
  auto sum_last = [](const UOp& v) { return sum(v, -1, false, v.dtype()); };
  switch (reduce) {
    case Scatter::sum: return combined(sum_last, add, zero);
    case Scatter::prod: return combined([](const UOp& v) { return prod(v, -1); }, mul, Scalar::of(1, x.dtype()));
    case Scatter::amax: return combined([](const UOp& v) { return ops::max(v, -1); }, maximum, min_value(x.dtype()));
    case Scatter::amin: return combined([](const UOp& v) { return ops::min(v, -1); }, minimum, max_value(x.dtype()));
    case Scatter::mean: break;
  }
  const UOp count = add(sum(goes, -1), include_self ? Operand(1) : Operand(tinygrad::cast(ops::logical_not(any(goes, -1)), DType::int32)));
  const Rounding rounding = is_float(x.dtype()) ? Rounding::none : Rounding::floor;
  return tinygrad::cast(div(combined(sum_last, add, zero), count, rounding), x.dtype());
}

UOp scatter(const UOp& x, int axis, const UOp& index, const Operand& src) {
  const int a = resolve_axis("scatter", axis, rank_of(x));
  const auto [sources, goes] = incoming(x, a, index, in_dtype_of(x, src, index, "scatter"));
  const SInt& count = shape_of(goes).back();
  const UOp last = ops::max(ops::where(goes, iota(count), -1), -1, true);
  const UOp value = sum(ops::where(ops::eq(last, iota(count)), sources, 0), -1, false, x.dtype());
  return ops::where(ge(ops::squeeze(last, -1), 0), value, x);
}

namespace {

/// The first `size` rows of `x` (n, ...) where mask (n) holds, then `fill`.
UOp select_rows(std::string_view op, const UOp& x, const UOp& mask, int64_t size, const Operand& fill) {
  if (size < 0) throw ValueError(fmt::format("{}: the size {}, expects at least 0", op, size));
  const Expr place = Expr(cumsum(mask, 0)) - 1;                                   // of the elements that the mask keeps
  const UOp matches = bitwise_and(mask, ops::eq(iota_along(0, 2, size), place));  // (size, n)
  const UOp source = sum(ops::where(matches, iota(shape_of(x)[0]), 0), -1);
  Shape beside(rank_of(x), SInt(1));
  beside[0] = size;
  const UOp filled = ops::reshape(lt(iota(size), sum(mask)), beside);
  return tinygrad::cast(ops::where(filled, gather_rows(x, 0, source), fill), x.dtype());
}

}  // namespace

UOp masked_select(const UOp& x, const UOp& mask, int64_t size, const Operand& fill) {
  if (!is_bool(mask.dtype())) throw DTypeError(fmt::format("masked_select: the mask is {}, expects dtypes.bool", repr(mask.dtype())));
  return select_rows("masked_select", ops::flatten(x), ops::flatten(broadcast_to(mask, shape_of(x))), size, fill);
}

UOp nonzero(const UOp& x, int64_t size, const Operand& fill) {
  const Shape& in = shape_of(x);
  if (in.empty()) return zeros(Shape{size, 0}, DType::int32);
  std::vector<UOp> columns;
  for (size_t i = 0; i < in.size(); ++i) columns.push_back(ops::flatten(broadcast_to(iota_along(int(i), in.size(), in[i]), in)));
  return select_rows("nonzero", stack(columns, 1), ops::flatten(ops::ne(x, 0)), size, fill);
}

}  // namespace tinygrad::ops
