#include "ops/movement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include <algorithm>

#include "uop/build.h"

namespace tinygrad::ops {

namespace {

bool is_keep(const SInt& size) { return size.known() && size.value() == -1; }

bool is_identity(const Axes& order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != int(i)) return false;
  return true;
}

[[noreturn]] void wrong_count(std::string_view op, const Shape& shape, std::string_view what, size_t got) {
  throw ShapeError(fmt::format("{}: {} has {} axes, got {} {}; give one an axis", op, to_string(shape), shape.size(), got, what));
}

/// What the sizes other than the -1 leave of `in`; equal symbolic factors cancel.
SInt inferred_size(const Shape& in, const Shape& sizes) {
  int64_t in_numbers = 1, out_numbers = 1;
  std::vector<SInt> in_symbols;
  SInt out_symbols = 1;
  for (const SInt& s : in) {
    if (s.known())
      in_numbers *= s.value();
    else
      in_symbols.push_back(s);
  }
  for (const SInt& s : sizes) {
    if (is_keep(s)) continue;
    const auto same = std::find(in_symbols.begin(), in_symbols.end(), s);
    if (s.known())
      out_numbers *= s.value();
    else if (same != in_symbols.end())
      in_symbols.erase(same);
    else
      out_symbols *= s;
  }
  if (out_numbers == 0 || (in_symbols.empty() && out_symbols == 1 && in_numbers % out_numbers != 0))
    throw ShapeError(fmt::format("reshape: cannot infer the -1 of {} from {}: the other sizes do not divide {} elements", to_string(sizes),
                                 to_string(in), to_string(numel(in))));
  SInt rest = 1;
  for (const SInt& s : in_symbols) rest *= s;
  if (in_numbers % out_numbers == 0 && out_symbols == 1) return rest * SInt(in_numbers / out_numbers);
  return floor_div(rest * SInt(in_numbers), out_symbols * SInt(out_numbers));
}

Pairs whole(const Shape& shape) {
  Pairs out;
  for (const SInt& s : shape) out.emplace_back(SInt(0), s);
  return out;
}

}  // namespace

int resolve_axis(std::string_view op, int axis, size_t rank, bool extra) {
  const int total = int(rank) + (extra ? 1 : 0);
  if (axis < -total || axis >= total)
    throw IndexError(total == 0 ? fmt::format("{}: axis {} of a scalar, which has none", op, axis)
                                : fmt::format("{}: axis {} is out of range, expects {} to {}", op, axis, -total, total - 1));
  return axis < 0 ? axis + total : axis;
}

Axes resolve_axes(std::string_view op, std::span<const int> axes, size_t rank) {
  Axes out;
  for (int a : axes) {
    const int axis = resolve_axis(op, a, rank);
    if (std::find(out.begin(), out.end(), axis) != out.end()) throw ValueError(fmt::format("{}: axis {} is given twice", op, axis));
    out.push_back(axis);
  }
  return out;
}

UOp reshape(const UOp& x, const Shape& sizes) {
  const Shape& in = shape_of(x);
  const auto inferred = std::count_if(sizes.begin(), sizes.end(), is_keep);
  if (inferred > 1) throw ShapeError(fmt::format("reshape: only one size of {} may be -1", to_string(sizes)));
  Shape out = sizes;
  for (SInt& s : out) {
    if (is_keep(s)) s = inferred_size(in, sizes);
    if (surely_less(s, 0)) throw ShapeError(fmt::format("reshape: {} has a negative size", to_string(sizes)));
  }
  if (out == in) return x;
  const SInt before = numel(in), after = numel(out);
  if (surely_differ(before, after) || less_now(before, after) || less_now(after, before))
    throw ShapeError(fmt::format("reshape: cannot view {} as {}: {} elements against {}", to_string(in), to_string(sizes),
                                 to_string(before), to_string(after)));
  return tinygrad::reshape(x, out);
}

UOp expand(const UOp& x, const Shape& sizes) {
  const Shape& in = shape_of(x);
  if (sizes.size() < in.size())
    throw ShapeError(fmt::format("expand: cannot expand {} to the fewer axes of {}", to_string(in), to_string(sizes)));
  Shape out = sizes;
  const size_t added = sizes.size() - in.size();
  for (size_t i = 0; i < out.size(); ++i) {
    if (!is_keep(out[i])) continue;
    if (i < added)
      throw ShapeError(fmt::format("expand: -1 in {} stands for a new axis of {}; give its size", to_string(sizes), to_string(in)));
    out[i] = in[i - added];
  }
  return broadcast_to(x, out);
}

UOp permute(const UOp& x, const Axes& order) {
  const Shape& in = shape_of(x);
  if (order.size() != in.size()) wrong_count("permute", in, "axes to order", order.size());
  const Axes axes = resolve_axes("permute", order, in.size());
  return is_identity(axes) ? x : tinygrad::permute(x, axes);
}

UOp transpose(const UOp& x, int axis0, int axis1) {
  const size_t rank = rank_of(x);
  const int a = resolve_axis("transpose", axis0, rank), b = resolve_axis("transpose", axis1, rank);
  Axes order;
  for (int i = 0; i < int(rank); ++i) order.push_back(i == a ? b : i == b ? a : i);
  return ops::permute(x, order);
}

UOp flip(const UOp& x, const Axes& axes) {
  const Shape& in = shape_of(x);
  Axes kept;
  for (int a : resolve_axes("flip", axes, in.size()))
    if (!(in[size_t(a)] == 1)) kept.push_back(a);
  std::sort(kept.begin(), kept.end());
  return kept.empty() ? x : tinygrad::flip(x, kept);
}

UOp shrink(const UOp& x, const Pairs& bounds) {
  const Shape& in = shape_of(x);
  if (bounds.size() != in.size()) wrong_count("shrink", in, "bounds", bounds.size());
  bool same = true;
  for (size_t i = 0; i < in.size(); ++i) {
    const auto& [begin, end] = bounds[i];
    if (less_now(begin, 0) || less_now(end, begin) || less_now(in[i], end))
      throw ShapeError(fmt::format("shrink: [{}, {}) is not within axis {} of {}", to_string(begin), to_string(end), i, to_string(in)));
    same = same && begin == 0 && end == in[i];
  }
  return same ? x : tinygrad::shrink(x, std::span(bounds.data(), bounds.size()));
}

UOp shrink_axis(const UOp& x, int axis, const SInt& begin, const SInt& end) {
  Pairs bounds = whole(shape_of(x));
  bounds[size_t(resolve_axis("shrink", axis, bounds.size()))] = {begin, end};
  return ops::shrink(x, bounds);
}

UOp shrink_to(const UOp& x, const Shape& sizes) {
  const Shape& in = shape_of(x);
  if (sizes.size() != in.size()) wrong_count("shrink_to", in, "sizes", sizes.size());
  Pairs bounds;
  for (size_t i = 0; i < in.size(); ++i) bounds.emplace_back(SInt(0), is_keep(sizes[i]) ? in[i] : sizes[i]);
  return ops::shrink(x, bounds);
}

UOp squeeze(const UOp& x) {
  Shape out;
  for (const SInt& s : shape_of(x))
    if (!(s == 1)) out.push_back(s);
  return ops::reshape(x, out);
}

UOp squeeze(const UOp& x, int axis) {
  Shape out = shape_of(x);
  if (out.empty() && (axis == 0 || axis == -1)) return x;
  const auto a = size_t(resolve_axis("squeeze", axis, out.size()));
  if (!(out[a] == 1)) return x;
  out.erase(out.begin() + a);
  return ops::reshape(x, out);
}

UOp unsqueeze(const UOp& x, int axis) {
  Shape out = shape_of(x);
  const int a = resolve_axis("unsqueeze", axis, out.size(), true);
  out.insert(out.begin() + a, SInt(1));
  return ops::reshape(x, out);
}

UOp flatten(const UOp& x, int start, int end) {
  const Shape& in = shape_of(x);
  if (in.empty()) return ops::reshape(x, Shape{1});
  const auto a = size_t(resolve_axis("flatten", start, in.size())), b = size_t(resolve_axis("flatten", end, in.size()));
  if (b < a) throw ValueError(fmt::format("flatten: the first axis {} comes after the last, {}", a, b));
  Shape out(in.begin(), in.begin() + a);
  out.push_back(numel(Shape(in.begin() + a, in.begin() + b + 1)));
  out.append(in.begin() + b + 1, in.end());
  return ops::reshape(x, out);
}

UOp unflatten(const UOp& x, int axis, const Shape& sizes) {
  const Shape& in = shape_of(x);
  const auto a = size_t(resolve_axis("unflatten", axis, in.size()));
  Shape parts = sizes;
  for (SInt& s : parts)
    if (is_keep(s) && std::count_if(sizes.begin(), sizes.end(), is_keep) == 1) s = inferred_size(Shape{in[a]}, sizes);
  if (surely_differ(numel(parts), in[a]) || std::any_of(parts.begin(), parts.end(), is_keep))
    throw ShapeError(fmt::format("unflatten: axis {} of {} has {} elements, {} takes {}", a, to_string(in), to_string(in[a]),
                                 to_string(sizes), to_string(numel(parts))));
  Shape out(in.begin(), in.begin() + a);
  out.append(parts.begin(), parts.end());
  out.append(in.begin() + a + 1, in.end());
  return ops::reshape(x, out);
}

UOp repeat(const UOp& x, const Shape& repeats) {
  const Shape& in = shape_of(x);
  if (repeats.size() < in.size()) wrong_count("repeat", in, "repeats", repeats.size());
  Shape base(repeats.size() - in.size(), SInt(1)), split, copies, out;
  base.append(in.begin(), in.end());
  for (size_t i = 0; i < base.size(); ++i) {
    if (surely_less(repeats[i], 0)) throw ValueError(fmt::format("repeat: {} has a negative count", to_string(repeats)));
    if (!(repeats[i] == 1)) {
      split.push_back(1);
      copies.push_back(repeats[i]);
    }
    split.push_back(base[i]);
    copies.push_back(base[i]);
    out.push_back(repeats[i] * base[i]);
  }
  return ops::reshape(ops::expand(ops::reshape(x, split), copies), out);
}

UOp repeat_interleave(const UOp& x, int64_t repeats, std::optional<int> axis) {
  if (repeats < 0) throw ValueError(fmt::format("repeat_interleave: {} repeats, expects at least 0", repeats));
  if (!axis) return repeat_interleave(ops::flatten(x), repeats, 0);
  Shape shape = shape_of(x);
  const int a = resolve_axis("repeat_interleave", *axis, shape.size());
  Shape copies = shape;
  copies.insert(copies.begin() + a + 1, SInt(repeats));
  shape[size_t(a)] *= repeats;
  return ops::reshape(ops::expand(ops::unsqueeze(x, a + 1), copies), shape);
}

std::vector<UOp> split(const UOp& x, std::span<const int64_t> sizes, int axis) {
  const Shape& in = shape_of(x);
  const int a = resolve_axis("split", axis, in.size());
  int64_t total = 0;
  for (int64_t s : sizes) {
    if (s < 0) throw ValueError(fmt::format("split: the size {}, expects at least 0", s));
    total += s;
  }
  if (!(in[size_t(a)] == total))
    throw ShapeError(fmt::format("split: the sizes ({}) add up to {}, axis {} of {} has {}", fmt::join(sizes, ", "), total, a,
                                 to_string(in), to_string(in[size_t(a)])));
  std::vector<UOp> out;
  int64_t begin = 0;
  for (int64_t s : sizes) {
    out.push_back(shrink_axis(x, a, begin, begin + s));
    begin += s;
  }
  return out;
}

std::vector<UOp> split(const UOp& x, int64_t size, int axis) {
  const Shape& in = shape_of(x);
  const int64_t n = in[size_t(resolve_axis("split", axis, in.size()))].value();
  if (size <= 0 && n > 0) throw ValueError(fmt::format("split: size {}, expects at least 1", size));
  std::vector<int64_t> sizes;
  for (int64_t begin = 0; begin < std::max<int64_t>(n, 1); begin += std::max<int64_t>(size, 1)) sizes.push_back(std::min(size, n - begin));
  return split(x, sizes, axis);
}

std::vector<UOp> chunk(const UOp& x, int64_t chunks, int axis) {
  if (chunks <= 0) throw ValueError(fmt::format("chunk: {} chunks, expects at least 1", chunks));
  const Shape& in = shape_of(x);
  const int64_t n = in[size_t(resolve_axis("chunk", axis, in.size()))].value();
  if (n == 0) return split(x, std::vector<int64_t>(size_t(chunks), 0), axis);
  return split(x, (n + chunks - 1) / chunks, axis);
}

UOp roll(const UOp& x, std::span<const int64_t> shifts, const Axes& axes) {
  const Shape& in = shape_of(x);
  if (axes.empty()) {
    if (shifts.size() != 1) throw ValueError(fmt::format("roll: {} shifts without axes, expects one", shifts.size()));
    return ops::reshape(roll(ops::flatten(x), shifts, Axes{0}), in);
  }
  if (axes.size() != shifts.size()) throw ValueError(fmt::format("roll: {} shifts for {} axes", shifts.size(), axes.size()));
  UOp y = x;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int a = resolve_axis("roll", axes[i], in.size());
    const SInt& n = in[size_t(a)];
    if (n == 0 || n == 1) continue;
    const SInt begin = n - floor_mod(SInt(shifts[i]), n);
    if (begin == n) continue;
    Shape twice(in.size(), SInt(1));
    twice[size_t(a)] = 2;
    y = shrink_axis(ops::repeat(y, twice), a, begin, begin + n);
  }
  return y;
}

UOp unfold(const UOp& x, int axis, int64_t size, int64_t step) {
  const Shape& in = shape_of(x);
  const int a = resolve_axis("unfold", axis, in.size());
  if (size < 0 || surely_less(in[size_t(a)], size))
    throw ValueError(fmt::format("unfold: size {} for axis {} of {}", size, a, to_string(in)));
  if (step <= 0) throw ValueError(fmt::format("unfold: step {}, expects at least 1", step));
  Axes to_last, back;
  for (int i = 0; i < int(in.size()); ++i)
    if (i != a) to_last.push_back(i);
  to_last.push_back(a);
  for (int i = 0; i < int(in.size()); ++i) back.push_back(i < a ? i : i == a ? int(in.size()) - 1 : i - 1);
  back.push_back(int(in.size()));
  const int64_t one = 1;
  return ops::permute(pool(ops::permute(x, to_last), std::span(&size, 1), std::span(&step, 1), std::span(&one, 1)), back);
}

UOp diag(const UOp& x) {
  const Shape& in = shape_of(x);
  if (in.size() != 1) throw ShapeError(fmt::format("diag: expects a vector, got {}", to_string(in)));
  const SInt& n = in[0];
  // Rows of length n + 1 with one element each, read as rows of length n.
  const UOp rows = pad_axis(ops::unsqueeze(x, 1), 1, 0, n);
  return ops::reshape(shrink_axis(ops::flatten(rows), 0, 0, n * n), Shape{n, n});
}

UOp diagonal(const UOp& x, int offset, int axis0, int axis1) {
  const Shape& in = shape_of(x);
  const int a = resolve_axis("diagonal", axis0, in.size()), b = resolve_axis("diagonal", axis1, in.size());
  if (a == b) throw ValueError(fmt::format("diagonal: the two axes are both {}", a));
  Axes order;
  for (int i = 0; i < int(in.size()); ++i)
    if (i != a && i != b) order.push_back(i);
  order.push_back(a);
  order.push_back(b);
  UOp y = ops::permute(x, order);
  const int64_t rows = in[size_t(a)].value(), columns = in[size_t(b)].value();
  const int64_t top = offset < 0 ? -int64_t(offset) : 0, left = offset > 0 ? offset : 0;
  const int64_t n = std::max<int64_t>(0, std::min(rows - top, columns - left));
  if (n == 0) {
    Shape none = shape_of(y);
    none.pop_back();
    none.back() = 0;
    return ops::reshape(shrink_axis(y, -2, 0, 0), none);
  }
  y = shrink_axis(shrink_axis(y, -2, top, top + n), -1, left, left + n);
  // Flat, the diagonal has every (n + 1)-th element.
  y = pad_axis(ops::flatten(y, -2), -1, 0, n);
  return ops::squeeze(shrink_axis(ops::unflatten(y, -1, Shape{n, n + 1}), -1, 0, 1), -1);
}

std::vector<UOp> meshgrid(std::span<const UOp> values, bool xy) {
  std::vector<UOp> out;
  Shape grid;
  for (size_t i = 0; i < values.size(); ++i) {
    if (rank_of(values[i]) > 1) throw ShapeError(fmt::format("meshgrid: expects vectors, got {}", to_string(shape_of(values[i]))));
    const size_t axis = xy && values.size() > 1 && i < 2 ? 1 - i : i;
    Shape shape(values.size(), SInt(1));
    shape[axis] = numel(shape_of(values[i]));
    out.push_back(values.size() == 1 ? values[0] : ops::reshape(values[i], shape));
    grid = broadcast_shape(grid, shape_of(out.back()), "meshgrid");
  }
  for (UOp& v : out) v = broadcast_to(v, grid);
  return out;
}

}  // namespace tinygrad::ops
