// Gathering and scattering by tensors of indices.
#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <array>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/gradient.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "ops/rows.h"
#include "ops/runs.h"
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

/// A vector as long as an axis, beside the other axes of a shape.
UOp beside(const UOp& vector, size_t rank, size_t axis) {
  Shape shape(rank, SInt(1));
  shape[axis] = shape_of(vector)[0];
  return ops::reshape(vector, shape);
}

/// The sum of `values` over those that go to each of the n positions, the indices a vector as long as the axis.
UOp add_rows(const UOp& values, size_t axis, const UOp& index, int64_t n) {
  const size_t rank = rank_of(values);
  const Runs runs = ordered_runs(signed_index(index), n);
  const UOp wide = tinygrad::cast(gather_rows(values, int(axis), runs.order), sum_acc_dtype(values.dtype()));
  const UOp totals = scan_runs(wide, beside(runs.keys, rank, axis), int(axis), add);
  const UOp picked = gather_rows(totals, int(axis), runs.last);
  return tinygrad::cast(ops::where(beside(gt(runs.count, 0), rank, axis), picked, 0), values.dtype());
}

/// The same where each lane of the last axis has indices of its own.
UOp add_lanes(const UOp& values, const UOp& index, int64_t n) {
  const Runs runs = ordered_runs(signed_index(index), n);
  const UOp wide = tinygrad::cast(gather(values, -1, runs.order), sum_acc_dtype(values.dtype()));
  const UOp totals = scan_runs(wide, runs.keys, int(rank_of(values)) - 1, add);
  return tinygrad::cast(ops::where(gt(runs.count, 0), gather(totals, -1, runs.last), 0), values.dtype());
}

/// The gradient of gather_rows: comparing, it would go through all positions for each index.
class GatherRowsGradient final : public GradientRule {
 public:
  explicit GatherRowsGradient(size_t axis) : axis_(axis) {}
  std::vector<UOp> gradients(const UOp& call, std::span<const UOp> given) const override {
    const UOp &x = call.src(1), &index = call.src(2);
    const Shape& xs = shape_of(x);
    Shape flat = xs;
    flat[axis_] = numel(shape_of(index));
    return {add_rows(ops::reshape(given[0], flat), axis_, ops::flatten(index), xs[axis_].value()), UOp()};
  }

 private:
  const size_t axis_;
};

/// The gradient of a gather.
class GatherGradient final : public GradientRule {
 public:
  explicit GatherGradient(size_t axis) : axis_(int(axis)) {}
  std::vector<UOp> gradients(const UOp& call, std::span<const UOp> given) const override {
    const Shape& xs = shape_of(call.src(1));
    const UOp index = ops::transpose(call.src(2), axis_, -1), g = ops::transpose(given[0], axis_, -1);
    return {pad_to(ops::transpose(add_lanes(g, index, xs[size_t(axis_)].value()), axis_, -1), xs), UOp()};
  }

 private:
  const int axis_;
};

/// The value of `build(x, index)`, with a gradient by this rule.
template <class Rule, class Build>
UOp with_gradient(const UOp& x, const UOp& index, size_t axis, Build build) {
  // One for each axis, so that equal gathers are one node.
  constexpr size_t most_axes = 64;
  static const auto& rules = *new std::array<IntrusivePtr<GradientRule>, most_axes>([] {
    std::array<IntrusivePtr<GradientRule>, most_axes> made;
    for (size_t a = 0; a < made.size(); ++a) made[a] = IntrusivePtr<GradientRule>(new Rule(a));
    return made;
  }());
  if (axis >= most_axes) return build(x, index);
  const UOp args[] = {x, index};
  return call_function(build(param_like(x, 0), param_like(index, 1)), args, Symbol("gather"), rules[axis]);
}

UOp compared_rows(const UOp& x, size_t a, const UOp& index) {
  const Shape &xs = shape_of(x), &is = shape_of(index);
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

/// More pairs of an index and a position than 64 bits can count.
bool too_many_pairs(const Shape& index, const SInt& n) {
  double pairs = double(n.max());
  for (const SInt& size : index) pairs *= double(size.max());
  return pairs >= 0x1p63;
}

UOp compared(const UOp& x, int a, const UOp& index) {
  Shape sizes = shape_of(index);
  const SInt& m = sizes[size_t(a)];
  if (m.known() && m.value() > 1 && too_many_pairs(sizes, shape_of(x)[size_t(a)])) {
    const int64_t half = m.value() / 2;
    const UOp parts[] = {compared(x, a, shrink_axis(index, a, 0, half)), compared(x, a, shrink_axis(index, a, half, m))};
    return cat(parts, a);
  }
  sizes[size_t(a)] = -1;
  // Over (index..., n): x with its axis moved to the end and 1 in its place.
  const UOp rows = to_last(shrink_to(x, sizes), a);
  return sum(ops::where(names(index, shape_of(x)[size_t(a)]), rows, 0), -1, false, x.dtype());
}

}  // namespace

UOp gather_rows(const UOp& x, int axis, const UOp& index) {
  const Shape& xs = shape_of(x);
  const auto a = size_t(resolve_axis("gather", axis, xs.size()));
  check_index("gather", index);
  if (!is_float(x.dtype()) || !worth_ordering(numel(shape_of(index)), numel(xs))) return compared_rows(x, a, index);
  return with_gradient<GatherRowsGradient>(x, index, a, [&](const UOp& v, const UOp& i) { return compared_rows(v, a, i); });
}

UOp scatter_rows(const UOp& x, int axis, const UOp& index, const UOp& rows) {
  const Shape &xs = shape_of(x), &is = shape_of(index);
  const auto a = size_t(resolve_axis("scatter", axis, xs.size()));
  const SInt count = numel(is);
  const UOp flat_index = ops::reshape(index, Shape{count});
  Shape flat = xs;
  flat[a] = count;
  UOp is_named, last;
  if (worth_ordering(count, xs[a])) {
    const Runs runs = ordered_runs(signed_index(flat_index), xs[a].value());
    is_named = gt(runs.count, 0);
    last = gather_rows(runs.order, 0, runs.last);
  } else {
    const UOp match = names(flat_index, xs[a]);                          // (count, n)
    last = ops::max(ops::where(match, iota_along(0, 2, count), -1), 0);  // (n)
    is_named = ge(last, 0);
  }
  const UOp values = gather_rows(ops::reshape(rows, flat), int(a), last);
  return ops::where(beside(is_named, xs.size(), a), values, x);
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
  if (!is_float(x.dtype()) || !worth_ordering(numel(shape_of(index)), shape_of(x)[size_t(a)])) return compared(x, a, index);
  return with_gradient<GatherGradient>(x, index, size_t(a), [&](const UOp& v, const UOp& i) { return compared(v, a, i); });
}

namespace {

/// What scattering combines, over (x's shape..., j): the sources and where they go. Both cover x: nothing goes to what index leaves out.
struct Incoming {
  UOp sources, goes;
};

Incoming incoming(const UOp& x, int axis, const UOp& index, const UOp& src) {
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

using Two = UOp (*)(const Operand&, const Operand&, const OpsContext&);

/// How a reduction combines: along the last axis, and two values.
struct Combine {
  UOp (*over_last)(const UOp&);
  Two two;
  Scalar (*identity)(DType);
};

constexpr Combine sums{[](const UOp& v) { return sum(v, -1, false, v.dtype()); }, add, [](DType d) { return Scalar::of(0, d); }};

Combine combine_of(ScatterMode reduce) {
  switch (reduce) {
    case ScatterMode::prod:
      return {[](const UOp& v) { return prod(v, -1, false, v.dtype()); }, mul, [](DType d) { return Scalar::of(1, d); }};
    case ScatterMode::amax: return {[](const UOp& v) { return ops::max(v, -1); }, maximum, min_value};
    case ScatterMode::amin: return {[](const UOp& v) { return ops::min(v, -1); }, minimum, max_value};
    case ScatterMode::sum:
    case ScatterMode::mean: break;
  }
  return sums;
}

/// What comes to each element of x: the sources combined, and how many there are (the last one's value for a null Combine).
struct Arrived {
  UOp values, count;
};

Arrived arrived_by_comparing(const UOp& x, int axis, const UOp& index, const UOp& src, const Combine* combine) {
  const auto [sources, goes] = incoming(x, axis, index, src);
  if (combine) return {combine->over_last(ops::where(goes, sources, combine->identity(x.dtype()))), count(goes, -1)};
  const SInt& count = shape_of(goes).back();
  const UOp last = ops::max(ops::where(goes, iota(count), -1), -1, true);
  return {sum(ops::where(ops::eq(last, iota(count)), sources, 0), -1, false, x.dtype()),
          tinygrad::cast(ge(ops::squeeze(last, -1), 0), DType::int32)};
}

Arrived arrived_by_ordering(const UOp& x, int axis, const UOp& index, const UOp& src, const Combine* combine) {
  const Shape& xs = shape_of(x);
  const UOp sources = ops::transpose(shrink_to(src, shape_of(index)), axis, -1);
  const Runs runs = ordered_runs(signed_index(ops::transpose(index, axis, -1)), xs[size_t(axis)].value());
  UOp values;
  if (combine) {
    const UOp sorted = gather(sources, -1, runs.order);
    values = gather(scan_runs(sorted, runs.keys, int(xs.size()) - 1, combine->two), -1, runs.last);
  } else {
    values = gather(sources, -1, gather(runs.order, -1, runs.last));
  }
  // Nothing comes to what the index does not cover.
  const auto covering = [&](const UOp& v) { return pad_to(ops::transpose(v, axis, -1), xs); };
  return {covering(values), covering(runs.count)};
}

Arrived arrived(std::string_view op, const UOp& x, int axis, const UOp& index, const UOp& src, const Combine* combine) {
  check_ranks(op, x, index);
  check_ranks(op, src, index);
  check_index(op, index);
  check_within(op, x, index, axis);
  check_within(op, src, index, -1);
  const bool ordering = all_known(shape_of(index)) && worth_ordering(shape_of(index)[size_t(axis)], numel(shape_of(x)));
  return ordering ? arrived_by_ordering(x, axis, index, src, combine) : arrived_by_comparing(x, axis, index, src, combine);
}

}  // namespace

UOp scatter_reduce(const UOp& x, int axis, const UOp& index, const UOp& src, ScatterMode reduce, bool include_self) {
  constexpr std::string_view op = "scatter_reduce";
  if (is_float(x.dtype()) && bitsize(x.dtype()) < 32 && reduce != ScatterMode::amax && reduce != ScatterMode::amin) {
    const auto wide = [](const UOp& u) { return tinygrad::cast(u, DType::float32); };
    return tinygrad::cast(scatter_reduce(wide(x), axis, index, wide(in_dtype_of(x, src, index, op)), reduce, include_self), x.dtype());
  }
  const int a = resolve_axis(op, axis, rank_of(x));
  const Combine combine = combine_of(reduce);
  const auto [values, count] = arrived(op, x, a, index, in_dtype_of(x, src, index, op), &combine);
  const UOp comes = gt(count, 0), identity = constant(combine.identity(x.dtype()));
  UOp total = combine.two(ops::where(comes, values, identity), include_self ? x : ops::where(comes, identity, x), {});
  if (reduce != ScatterMode::mean) return total;
  const UOp divisor = include_self ? add(count, 1) : maximum(count, 1);
  return tinygrad::cast(div(total, divisor, is_float(x.dtype()) ? Rounding::none : Rounding::floor), x.dtype());
}

UOp scatter(const UOp& x, int axis, const UOp& index, const Operand& src) {
  constexpr std::string_view op = "scatter";
  const int a = resolve_axis(op, axis, rank_of(x));
  const auto [values, count] = arrived(op, x, a, index, in_dtype_of(x, src, index, op), nullptr);
  return ops::where(gt(count, 0), values, x);
}

namespace {

/// Where the first `size` elements are for which mask (n) holds, and whether there are as many.
struct Kept {
  UOp source, is_there;
};

Kept kept_by(std::string_view op, const UOp& mask, int64_t size) {
  if (size < 0) throw ValueError(fmt::format("{}: the size {}, expects at least 0", op, size));
  const SInt& n = shape_of(mask)[0];
  const UOp kept = cumsum(mask, 0, index_dtype(n + 1)), is_there = lt(iota(size), count(mask));
  if (worth_ordering(n, size)) return {count_at_most(contiguous(kept), iota(size)), is_there};
  const UOp matches = bitwise_and(mask, ops::eq(add(iota_along(0, 2, size), 1), kept));  // (size, n)
  return {sum(ops::where(matches, iota(n), 0), -1, false, index_dtype(n)), is_there};
}

}  // namespace

UOp masked_select(const UOp& x, const UOp& mask, int64_t size, const Operand& fill) {
  if (!is_bool(mask.dtype())) throw DTypeError(fmt::format("masked_select: the mask is {}, expects dtypes.bool", repr(mask.dtype())));
  const Kept kept = kept_by("masked_select", ops::flatten(broadcast_to(mask, shape_of(x))), size);
  const Operand rest = fill.is_number() ? Operand(checked_cast(fill.number(), x.dtype(), "masked_select: fill")) : fill;
  return tinygrad::cast(ops::where(kept.is_there, gather_rows(ops::flatten(x), 0, kept.source), rest), x.dtype());
}

UOp nonzero(const UOp& x, int64_t size, const Operand& fill) {
  const Shape& in = shape_of(x);
  if (in.empty()) return zeros(Shape{size, 0}, DType::int32);
  const Kept kept = kept_by("nonzero", ops::flatten(ops::ne(x, 0)), size);
  std::vector<UOp> columns(in.size());
  UOp rest = kept.source;
  for (size_t i = in.size(); i-- > 0; rest = div(rest, in[i], Rounding::floor)) columns[i] = mod(rest, in[i]);
  DType dtype = DType::int32;
  for (const SInt& n : in) dtype = index_dtype(n, dtype);
  if (fill.is_number()) checked_cast(fill.number(), dtype, "nonzero: fill");
  return tinygrad::cast(ops::where(ops::unsqueeze(kept.is_there, 1), stack(columns, 1), fill), dtype);
}

}  // namespace tinygrad::ops
