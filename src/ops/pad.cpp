// Values surrounded by zeros, constants or their own edges.
#include <fmt/core.h>
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
  UOp padded = tinygrad::pad(x, pairs);
  if (is_zero(value)) return padded;
  const UOp inside = tinygrad::pad(tinygrad::expand(bool_const(true), shape_of(x)), pairs);
  if (!value.is_number()) broadcast_shape(shape_of(padded), shape_of(value.node()), "pad");
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
    UOps parts;
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

}  // namespace tinygrad::ops
