#include "ops/index.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <algorithm>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "ops/rows.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// One axis of x under an index: elements begin, begin + |step|, ... of [begin, end), backwards if the step is negative.
struct View {
  SInt begin, end;
  int64_t step = 1;
  SInt size;  ///< elements selected
};

/// Indices taken apart: how each axis of x is viewed, the shape after integers dropped axes and new ones came, and the tensors.
struct Parsed {
  std::vector<View> views;
  Shape shape;
  std::vector<std::pair<int, UOp>> tensors;  ///< axis of `shape`, index
};

bool is_size(const UOp& u) { return u.dtype() == DType::index && shape_of(u).empty(); }

View whole(const SInt& n) { return {0, n, 1, n}; }

View at(const SInt& i, const SInt& n, size_t axis) {
  if ((!surely_less(i, n) && surely_not_greater(n, i)) || less_now(n, i + 1) || less_now(i, -n))
    throw IndexError(fmt::format("indexing: index {} is out of range for axis {} of size {}", to_string(i), axis, to_string(n)));
  const SInt begin = surely_less(i, 0) ? i + n : i;
  return {begin, begin + 1, 1, 1};
}

/// A bound of a slice: from the end where negative, within [low, high].
int64_t clip_bound(const std::optional<SInt>& bound, int64_t fallback, int64_t n, int64_t low, int64_t high) {
  if (!bound) return fallback;
  const int64_t b = bound->value() < 0 ? bound->value() + n : bound->value();
  return std::clamp(b, low, high);
}

View known_slice(const Slice& s, int64_t n) {
  if (s.step > 0) {
    const int64_t begin = clip_bound(s.start, 0, n, 0, n), end = std::max(begin, clip_bound(s.stop, n, n, 0, n));
    return {begin, end, s.step, (end - begin + s.step - 1) / s.step};
  }
  // Backwards from `first` to before `last`, which is [last + 1, first + 1) read from its end.
  const int64_t first = clip_bound(s.start, n - 1, n, -1, n - 1), last = std::min(first, clip_bound(s.stop, -1, n, -1, n - 1));
  return {last + 1, first + 1, s.step, (first - last - s.step - 1) / -s.step};
}

View slice(const Slice& s, const SInt& n) {
  if (s.step == 0) throw ValueError("indexing: a slice has a step of 0, expects another integer");
  const bool known = n.known() && (!s.start || s.start->known()) && (!s.stop || s.stop->known());
  if (known) return known_slice(s, n.value());
  if (s.step != 1) throw ValueError(fmt::format("indexing: a slice with symbolic bounds has a step of {}, expects 1", s.step));
  auto from_end = [&](const SInt& b) { return surely_less(b, 0) ? b + n : b; };
  const SInt begin = s.start ? from_end(*s.start) : SInt(0), end = s.stop ? from_end(*s.stop) : n;
  if (less_now(begin, 0) || less_now(end, begin) || less_now(n, end))
    throw IndexError(
        fmt::format("indexing: the slice [{}, {}) is not within an axis of size {}", to_string(begin), to_string(end), to_string(n)));
  return {begin, end, 1, end - begin};
}

/// The indices with "..." spelled out, and missing ones at the end.
std::vector<Index> spelled_out(const Shape& in, std::span<const Index> indices) {
  size_t real = 0, ellipses = 0;
  for (const Index& i : indices) {
    ellipses += std::holds_alternative<Ellipsis>(i);
    real += !std::holds_alternative<Ellipsis>(i) && !std::holds_alternative<NewAxis>(i);
  }
  if (ellipses > 1) throw IndexError("indexing: there can be only one ellipsis");
  if (real > in.size()) throw IndexError(fmt::format("indexing: {} indices for {}, which has {} axes", real, to_string(in), in.size()));
  std::vector<Index> out;
  for (const Index& i : indices) {
    if (std::holds_alternative<Ellipsis>(i))
      out.insert(out.end(), in.size() - real, Slice{});
    else
      out.push_back(i);
  }
  if (ellipses == 0) out.insert(out.end(), in.size() - real, Slice{});
  return out;
}

UOp checked_tensor(const UOp& index, const SInt& n) {
  if (is_bool(index.dtype()))
    throw IndexError("a bool mask selects a number of elements that depends on the data: use masked_select, or where(mask, a, b)");
  if (!is_int(index.dtype())) throw IndexError(fmt::format("a tensor of {} as index, expects integers", repr(index.dtype())));
  const UOp i = tinygrad::cast(index, bitsize(index.dtype()) < 32 ? DType::int32 : index.dtype());
  return is_unsigned(i.dtype()) ? i : ops::where(lt(i, 0), add(i, n), i);
}

Parsed parse(const UOp& x, std::span<const Index> indices) {
  const Shape& in = shape_of(x);
  Parsed p;
  for (const Index& index : spelled_out(in, indices)) {
    if (std::holds_alternative<NewAxis>(index)) {
      p.shape.push_back(1);
      continue;
    }
    const size_t axis = p.views.size();
    const SInt& n = in[axis];
    const UOp* tensor = std::get_if<UOp>(&index);
    if (tensor && !is_size(*tensor)) {
      p.tensors.emplace_back(int(p.shape.size()), checked_tensor(*tensor, n));
      p.views.push_back(whole(n));
      p.shape.push_back(n);
    } else if (const Slice* s = std::get_if<Slice>(&index)) {
      p.views.push_back(slice(*s, n));
      p.shape.push_back(p.views.back().size);
    } else {
      p.views.push_back(at(tensor ? SInt(*tensor) : std::get<SInt>(index), n, axis));
    }
  }
  return p;
}

/// x with every axis viewed, no axis dropped yet.
UOp viewed(const UOp& x, const std::vector<View>& views) {
  Pairs bounds;
  Axes backwards;
  for (size_t i = 0; i < views.size(); ++i) {
    bounds.emplace_back(views[i].begin, views[i].end);
    if (views[i].step < 0) backwards.push_back(int(i));
  }
  UOp y = ops::flip(ops::shrink(x, bounds), backwards);
  for (int i = 0; i < int(views.size()); ++i) {
    const int64_t step = std::abs(views[size_t(i)].step);
    if (step == 1) continue;
    // Rows of `step` elements, of which the first is taken.
    const SInt &size = views[size_t(i)].size, padding = size * SInt(step) - shape_of(y)[size_t(i)];
    y = ops::unflatten(pad_axis(y, i, 0, padding), i, Shape{size, step});
    y = ops::squeeze(shrink_axis(y, i + 1, 0, 1), i + 1);
  }
  return y;
}

/// The reverse of `viewed`: y's elements put back where they come from in `shape`, zeros elsewhere.
UOp unviewed(UOp y, const std::vector<View>& views, const Shape& shape) {
  Axes backwards;
  Pairs around;
  for (int i = 0; i < int(views.size()); ++i) {
    const View& v = views[size_t(i)];
    const int64_t step = std::abs(v.step);
    if (step != 1 && !(v.size == 0)) {
      y = ops::flatten(pad_axis(ops::unsqueeze(y, i + 1), i + 1, 0, step - 1), i, i + 1);
      y = shrink_axis(pad_axis(y, i, 0, max(v.end - v.begin - v.size * SInt(step), SInt(0))), i, 0, v.end - v.begin);
    }
    if (v.step < 0) backwards.push_back(i);
    const SInt end = v.size == 0 ? v.begin : v.end;
    around.emplace_back(v.begin, shape[size_t(i)] - end);
  }
  return ops::pad(ops::flip(y, backwards), around);
}

/// Several index tensors as one over their axes joined, and where that goes.
struct Rows {
  Axes order;  ///< of the viewed value: the indexed axes side by side
  int axis = 0;
  SInt count = 1;  ///< size of the joined axes
  UOp index;       ///< into the joined axes; -1 where any is out of range
};

Rows join_tensors(const Parsed& p) {
  const int first = p.tensors.front().first, last = p.tensors.back().first;
  const bool together = last - first + 1 == int(p.tensors.size());
  Rows rows;
  rows.axis = together ? first : 0;
  auto is_indexed = [&](int axis) {
    return std::any_of(p.tensors.begin(), p.tensors.end(), [&](const auto& t) { return t.first == axis; });
  };
  for (int i = 0; i < rows.axis; ++i) rows.order.push_back(i);
  for (const auto& t : p.tensors) rows.order.push_back(t.first);
  for (int i = 0; i < int(p.shape.size()); ++i)
    if (i >= rows.axis && !is_indexed(i)) rows.order.push_back(i);
  UOp valid;
  for (const auto& [axis, index] : p.tensors) {
    const SInt& n = p.shape[size_t(axis)];
    if (rows.index) broadcast_shape(shape_of(rows.index), shape_of(index), "indexing");
    const UOp inside = is_unsigned(index.dtype()) ? lt(index, n) : bitwise_and(ge(index, 0), lt(index, n));
    valid = valid ? bitwise_and(valid, inside) : inside;
    rows.index = rows.index ? add(mul(rows.index, n), index) : index;
    rows.count *= n;
  }
  // One index out of range matches no position by itself; of several, the sum might.
  if (p.tensors.size() > 1) rows.index = ops::where(valid, rows.index, -1);
  return rows;
}

/// The viewed value with the indexed axes joined into one, at rows.axis.
UOp joined(const UOp& view, const Rows& rows, size_t tensors) {
  const UOp y = ops::permute(view, rows.order);
  return ops::flatten(y, rows.axis, rows.axis + int(tensors) - 1);
}

UOp separated(const UOp& y, const UOp& view, const Rows& rows) {
  Shape permuted;
  Axes back(rows.order.size(), 0);
  for (size_t i = 0; i < rows.order.size(); ++i) {
    permuted.push_back(shape_of(view)[size_t(rows.order[i])]);
    back[size_t(rows.order[i])] = int(i);
  }
  return ops::permute(ops::reshape(y, permuted), back);
}

UOp fit_value(const Operand& value, DType dtype, const Shape& shape) {
  const UOp v = as_node(value, dtype);
  Shape in = shape_of(v);
  // Leading axes of size 1 may be dropped, as in NumPy.
  while (in.size() > shape.size() && in[0] == 1) in.erase(in.begin());
  if (in.size() > shape.size() || broadcast_shape(in, shape, "assignment") != shape)
    throw ShapeError(fmt::format("assignment: a value of {} does not fit the indexed part {}", to_string(shape_of(v)), to_string(shape)));
  return broadcast_to(ops::reshape(v, in), shape);
}

}  // namespace

UOp get_item(const UOp& x, std::span<const Index> indices) {
  const Parsed p = parse(x, indices);
  UOp view = ops::reshape(viewed(x, p.views), p.shape);
  if (p.tensors.empty()) return view;
  const Rows rows = join_tensors(p);
  return gather_rows(joined(view, rows, p.tensors.size()), rows.axis, rows.index);
}

UOp set_item(const UOp& x, std::span<const Index> indices, const Operand& value) {
  const Parsed p = parse(x, indices);
  const Shape& shape = shape_of(x);
  UOp part;
  if (p.tensors.empty()) {
    part = fit_value(value, x.dtype(), p.shape);
  } else {
    UOp view = ops::reshape(viewed(x, p.views), p.shape);
    const Rows rows = join_tensors(p);
    const UOp before = joined(view, rows, p.tensors.size());
    Shape selected = shape_of(before);
    selected.erase(selected.begin() + rows.axis);
    Shape with_index(selected.begin(), selected.begin() + rows.axis);
    with_index.append(shape_of(rows.index).begin(), shape_of(rows.index).end());
    with_index.append(selected.begin() + rows.axis, selected.end());
    part = separated(scatter_rows(before, rows.axis, rows.index, fit_value(value, x.dtype(), with_index)), view, rows);
  }
  Shape kept;
  for (const View& v : p.views) kept.push_back(v.size);
  const UOp inside = unviewed(broadcast_to(bool_const(true), kept), p.views, shape);
  return ops::where(inside, unviewed(ops::reshape(part, kept), p.views, shape), x);
}

}  // namespace tinygrad::ops
