#include <fmt/format.h>
#include <tinygrad/errors.h>

#include <algorithm>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

bool is_zero(const Operand& value) { return value.is_number() && value.number().is_positive_zero(); }

Pairs none(size_t rank) { return Pairs(rank, std::pair<SInt, SInt>(0, 0)); }

/// Negative amounts cut off, the others kept.
std::pair<UOp, Pairs> cut(const UOp& x, const Pairs& amounts) {
  const Shape& in = shape_of(x);
  Pairs bounds, rest;
  for (size_t i = 0; i < in.size(); ++i) {
    const auto& [before, after] = amounts[i];
    const bool cut_before = surely_less(before, 0), cut_after = surely_less(after, 0);
    bounds.emplace_back(cut_before ? -before : SInt(0), cut_after ? in[i] + after : in[i]);
    rest.emplace_back(cut_before ? SInt(0) : before, cut_after ? SInt(0) : after);
  }
  return {ops::shrink(x, bounds), rest};
}

bool all_zero(const Pairs& amounts) {
  return std::all_of(amounts.begin(), amounts.end(), [](const auto& p) { return p.first == 0 && p.second == 0; });
}

UOp pad_constant(const UOp& x, const Pairs& amounts, const Operand& value) {
  if (all_zero(amounts)) return x;
  const std::span<const std::pair<SInt, SInt>> pairs(amounts.data(), amounts.size());
  const UOp padded = tinygrad::pad(x, pairs);
  if (is_zero(value)) return padded;
  const UOp inside = tinygrad::pad(tinygrad::expand(bool_const(true), shape_of(x)), pairs);
  return ops::where(inside, padded, value);
}

UOp pad_circular(const UOp& x, const Pairs& amounts) {
  const Shape& in = shape_of(x);
  Shape copies;
  Pairs bounds;
  for (size_t i = 0; i < in.size(); ++i) {
    const auto& [before, after] = amounts[i];
    if (surely_less(in[i], before) || surely_less(in[i], after))
      throw ValueError(fmt::format("pad: circular padding ({}, {}) of axis {} goes around {} more than once", to_string(before),
                                   to_string(after), i, to_string(in)));
    const int64_t left = before == 0 ? 0 : 1, right = after == 0 ? 0 : 1;
    copies.push_back(1 + left + right);
    const SInt begin = left ? in[i] - before : SInt(0);
    bounds.emplace_back(begin, begin + before + in[i] + after);
  }
  return ops::shrink(ops::repeat(x, copies), bounds);
}

/// `count` elements of the axis next to an edge, as they follow it outwards.
UOp edge(const UOp& x, int axis, const SInt& count, bool at_start, PadMode mode) {
  const SInt& n = shape_of(x)[size_t(axis)];
  if (mode == PadMode::reflect) {
    const UOp part = at_start ? shrink_axis(x, axis, 1, count + 1) : shrink_axis(x, axis, n - 1 - count, n - 1);
    return ops::flip(part, Axes{axis});
  }
  const UOp one = at_start ? shrink_axis(x, axis, 0, 1) : shrink_axis(x, axis, n - 1, n);
  Shape shape = shape_of(one);
  shape[size_t(axis)] = count;
  return ops::expand(one, shape);
}

UOp pad_edges(UOp x, const Pairs& amounts, PadMode mode) {
  for (int axis = 0; axis < int(amounts.size()); ++axis) {
    const auto& [before, after] = amounts[size_t(axis)];
    const SInt& n = shape_of(x)[size_t(axis)];
    if (mode == PadMode::reflect && (!surely_less(before, n) || !surely_less(after, n)))
      throw ValueError(fmt::format("pad: reflected padding ({}, {}) of axis {} must be less than its size {}", to_string(before),
                                   to_string(after), axis, to_string(n)));
    std::vector<UOp> parts;
    if (!(before == 0)) parts.push_back(edge(x, axis, before, true, mode));
    parts.push_back(x);
    if (!(after == 0)) parts.push_back(edge(x, axis, after, false, mode));
    x = cat(parts, axis);
  }
  return x;
}

}  // namespace

UOp pad(const UOp& x, const Pairs& amounts, const Operand& value, PadMode mode) {
  const Shape& in = shape_of(x);
  if (amounts.size() != in.size())
    throw ShapeError(fmt::format("pad: {} has {} axes, got padding for {}", to_string(in), in.size(), amounts.size()));
  // Reflected and repeated edges come from the whole value, so what is cut is cut last.
  if (mode == PadMode::reflect || mode == PadMode::replicate) {
    Pairs grown;
    for (const auto& [before, after] : amounts) grown.emplace_back(max(before, SInt(0)), max(after, SInt(0)));
    const UOp y = pad_edges(x, grown, mode);
    Pairs cuts;
    for (const auto& [before, after] : amounts) cuts.emplace_back(min(before, SInt(0)), min(after, SInt(0)));
    return cut(y, cuts).first;
  }
  const auto [kept, rest] = cut(x, amounts);
  return mode == PadMode::circular ? pad_circular(kept, rest) : pad_constant(kept, rest, value);
}

UOp pad_axis(const UOp& x, int axis, const SInt& before, const SInt& after, const Operand& value) {
  Pairs amounts = none(rank_of(x));
  amounts[size_t(resolve_axis("pad", axis, amounts.size()))] = {before, after};
  return ops::pad(x, amounts, value);
}

UOp pad_to(const UOp& x, const Shape& sizes, const Operand& value) {
  const Shape& in = shape_of(x);
  if (sizes.size() != in.size())
    throw ShapeError(fmt::format("pad_to: {} has {} axes, got {} sizes", to_string(in), in.size(), sizes.size()));
  Pairs amounts;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool keep = sizes[i].known() && sizes[i].value() == -1;
    if (!keep && surely_less(sizes[i], in[i]))
      throw ShapeError(fmt::format("pad_to: cannot pad {} to {}: axis {} would shrink", to_string(in), to_string(sizes), i));
    amounts.emplace_back(SInt(0), keep ? SInt(0) : sizes[i] - in[i]);
  }
  return ops::pad(x, amounts, value);
}

Pairs grouped_padding(std::span<const int64_t> flat, size_t rank) {
  if (flat.size() % 2 != 0 || flat.size() / 2 > rank)
    throw ValueError(fmt::format("pad: {} numbers for {} axes, expects (before, after) for some of the last axes", flat.size(), rank));
  Pairs out = none(rank);
  for (size_t i = 0; i < flat.size() / 2; ++i) out[rank - 1 - i] = {flat[2 * i], flat[2 * i + 1]};
  return out;
}

namespace {

void check_cat(std::span<const UOp> values, size_t axis) {
  const Shape& first = shape_of(values[0]);
  for (const UOp& v : values) {
    const Shape& s = shape_of(v);
    bool fits = s.size() == first.size();
    for (size_t i = 0; fits && i < s.size(); ++i) fits = i == axis || s[i] == first[i];
    if (!fits)
      throw ShapeError(
          fmt::format("cat: cannot join {} and {} along axis {}: only that axis may differ", to_string(first), to_string(s), axis));
  }
}

}  // namespace

UOp cat(std::span<const UOp> values, int axis) {
  if (values.empty()) throw ValueError("cat: got no values, expects at least one");
  const size_t rank = rank_of(values[0]);
  const auto a = size_t(resolve_axis("cat", axis, rank));
  check_cat(values, a);
  DType dtype = values[0].dtype();
  SInt total = 0;
  std::vector<UOp> parts;
  for (const UOp& v : values) {
    dtype = least_upper_dtype(dtype, v.dtype());
    total += shape_of(v)[a];
    if (!(shape_of(v)[a] == 0)) parts.push_back(v);
  }
  if (parts.empty()) return tinygrad::cast(values[0], dtype);
  // The first part whose end lies behind the position; adding the padded parts would lose the sign of -0.0.
  const UOp position = iota_along(int(a), rank, total);
  UOp joined;
  SInt end = total;
  for (size_t i = parts.size(); i-- > 0;) {
    const SInt begin = end - shape_of(parts[i])[a];
    const UOp part = pad_axis(tinygrad::cast(parts[i], dtype), int(a), begin, total - end);
    joined = joined ? ops::where(lt(position, end), part, joined) : part;
    end = begin;
  }
  return joined;
}

UOp stack(std::span<const UOp> values, int axis) {
  if (values.empty()) throw ValueError("stack: got no values, expects at least one");
  const Shape& first = shape_of(values[0]);
  const int a = resolve_axis("stack", axis, first.size(), true);
  std::vector<UOp> parts;
  for (const UOp& v : values) {
    if (shape_of(v) != first)
      throw ShapeError(fmt::format("stack: the values must have one shape, got {} and {}", to_string(first), to_string(shape_of(v))));
    parts.push_back(ops::unsqueeze(v, a));
  }
  return cat(parts, a);
}

namespace {

struct Window {
  int64_t kernel, stride, dilation;
};

/// Windows over the last axis: (..., out, kernel).
UOp pool_last(const UOp& x, Window w) {
  const Shape& in = shape_of(x);
  const int last = int(in.size()) - 1;
  const int64_t n = in[size_t(last)].value();
  const int64_t out = (n - w.dilation * (w.kernel - 1) - 1) / w.stride + 1;
  if (w.kernel <= 1 || (w.dilation == 1 && w.kernel <= w.stride)) {  // windows do not overlap: cut the axis, then each piece
    const UOp y = out * w.stride > n ? pad_axis(x, last, 0, out * w.stride - n) : shrink_axis(x, last, 0, out * w.stride);
    return shrink_axis(ops::unflatten(y, last, Shape{out, w.stride}), last + 1, 0, w.kernel);
  }
  // Copies of x read as rows longer than x by the dilation: row k begins k * dilation further into x.
  const int64_t reps = std::max<int64_t>(1, (out * w.stride - w.dilation + n - 1) / n), row = n * reps + w.dilation;
  Shape copies(in.size(), SInt(1));
  copies[size_t(last)] = (w.kernel * row + n - 1) / n;
  UOp y = shrink_axis(ops::repeat(x, copies), last, 0, w.kernel * row);
  y = shrink_axis(ops::unflatten(y, last, Shape{w.kernel, row}), last + 1, 0, out * w.stride);
  y = shrink_axis(ops::unflatten(y, last + 1, Shape{out, w.stride}), last + 2, 0, 1);
  return ops::transpose(ops::squeeze(y, last + 2), last, last + 1);
}

}  // namespace

UOp pool(const UOp& x, std::span<const int64_t> kernel, std::span<const int64_t> stride, std::span<const int64_t> dilation) {
  const Shape in = shape_of(x);
  const size_t count = kernel.size(), lead = in.size() - count;
  if (count > in.size() || stride.size() != count || dilation.size() != count)
    throw ValueError(
        fmt::format("pool: {} kernel sizes, {} strides and {} dilations for {}", count, stride.size(), dilation.size(), to_string(in)));
  UOp y = x;
  for (size_t i = 0; i < count; ++i) {
    const Window w{kernel[i], stride[i], dilation[i]};
    if (w.kernel < 0 || w.stride < 1 || w.dilation < 1)
      throw ValueError(
          fmt::format("pool: kernel {}, stride {}, dilation {}: the last two must be at least 1", w.kernel, w.stride, w.dilation));
    if (w.dilation * (w.kernel - 1) + 1 > in[lead + i].value())
      throw ShapeError(
          fmt::format("pool: a window of {} elements {} apart does not fit axis {} of {}", w.kernel, w.dilation, lead + i, to_string(in)));
    // The axis to the end, its windows behind those made before: (lead..., later axes..., o0, k0, ..., oi, ki).
    Axes order;
    for (size_t a = 0; a < rank_of(y); ++a)
      if (a != lead) order.push_back(int(a));
    order.push_back(int(lead));
    y = pool_last(ops::permute(y, order), w);
  }
  Axes order;
  for (size_t a = 0; a < lead; ++a) order.push_back(int(a));
  for (size_t i = 0; i < count; ++i) order.push_back(int(lead + 2 * i));
  for (size_t i = 0; i < count; ++i) order.push_back(int(lead + 2 * i + 1));
  return ops::permute(y, order);
}

}  // namespace tinygrad::ops
