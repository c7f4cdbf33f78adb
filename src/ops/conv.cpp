// Convolutions and pooling: windows made by views, then products and sums.
#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <algorithm>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/nn.h"
#include "ops/reduce.h"
#include "ops/winograd.h"
#include "uop/build.h"

namespace tinygrad::ops {

SmallVector<int64_t, 4> PerAxis::resolve(std::string_view op, std::string_view what, size_t count) const {
  if (values_.size() == 1) return SmallVector<int64_t, 4>(count, values_[0]);
  if (values_.size() != count) throw ValueError(fmt::format("{}: {} numbers for the {} of {} axes", op, values_.size(), what, count));
  return values_;
}

namespace {

using Numbers = SmallVector<int64_t, 4>;

std::span<const int64_t> view_of(const Numbers& n) { return {n.data(), n.size()}; }

/// (before, after) of each of the last `count` axes, and (0, 0) of those before.
Pairs spatial_padding(std::string_view op, const PerAxis& padding, size_t rank, size_t count) {
  if (padding.size() == 2 * count && count != 0) {
    Numbers flat;
    for (size_t i = 0; i < padding.size(); ++i) flat.push_back(padding[i]);
    return grouped_padding(view_of(flat), rank);
  }
  const Numbers each = padding.resolve(op, "padding", count);
  Pairs out(rank, std::pair<SInt, SInt>(0, 0));
  for (size_t i = 0; i < count; ++i) out[rank - count + i] = {each[i], each[i]};
  return out;
}

/// The same, of which negative amounts cut elements of `in` off.
Pairs padding_of(std::string_view op, const PerAxis& padding, const Shape& in, size_t count) {
  Pairs out = spatial_padding(op, padding, in.size(), count);
  for (size_t a = 0; a < in.size(); ++a)
    if (const auto& [before, after] = out[a]; less_now(in[a] + min(before, SInt(0)) + min(after, SInt(0)), 0))
      throw ShapeError(fmt::format("{}: the padding ({}, {}) cuts off more than the {} elements of axis {}", op, to_string(before),
                                   to_string(after), to_string(in[a]), a));
  return out;
}

Axes last_axes(size_t count) {
  Axes out;
  for (size_t i = 0; i < count; ++i) out.push_back(int(i) - int(count));
  return out;
}

/// The shape with its axes from `from` on replaced.
Shape with_tail(const Shape& shape, size_t from, std::initializer_list<Shape> tails) {
  Shape out(shape.begin(), shape.begin() + from);
  for (const Shape& t : tails) out.append(t.begin(), t.end());
  return out;
}

Shape tail(const Shape& shape, size_t from) { return Shape(shape.begin() + from, shape.end()); }

struct ConvSizes {
  SInt batch, out_per_group, in_per_group;
  int64_t groups;
  size_t spatial;
};

ConvSizes conv_sizes(std::string_view op, const Shape& x, const Shape& w, int64_t groups) {
  if (w.size() < 3 || x.size() != w.size())
    throw ShapeError(fmt::format("{}: the input {} and the weight {} must have as many axes, at least 3", op, to_string(x), to_string(w)));
  if (groups < 1 || !(floor_mod(w[0], groups) == 0))
    throw ValueError(
        fmt::format("{}: {} groups do not divide the {} output channels of the weight {}", op, groups, to_string(w[0]), to_string(w)));
  if (!(w[1] * SInt(groups) == x[1]))
    throw ShapeError(fmt::format("{}: the input {} has {} channels, the weight {} with {} groups takes {}", op, to_string(x),
                                 to_string(x[1]), to_string(w), groups, to_string(w[1] * SInt(groups))));
  return {x[0], floor_div(w[0], groups), w[1], groups, w.size() - 2};
}

/// Windows have elements and go on by at least one.
void check_windows(std::string_view op, const Shape& kernel, const Numbers& stride, const Numbers& dilation) {
  for (size_t i = 0; i < kernel.size(); ++i)
    if (less_now(kernel[i], 1) || stride[i] < 1 || dilation[i] < 1)
      throw ValueError(fmt::format("{}: the kernel size {}, the stride {} and the dilation {} must be at least 1", op, to_string(kernel[i]),
                                   stride[i], dilation[i]));
}

void check_bias(std::string_view op, const UOp& bias, const SInt& channels) {
  if (bias && shape_of(bias) != Shape{channels})
    throw ShapeError(fmt::format("{}: the bias {} does not fit {} output channels, expects ({},)", op, to_string(shape_of(bias)),
                                 to_string(channels), to_string(channels)));
}

UOp add_channel_bias(const UOp& y, const UOp& bias) {
  if (!bias) return y;
  Shape shape(rank_of(y), SInt(1));
  shape[1] = -1;
  return add(y, ops::reshape(bias, shape));
}

bool takes_winograd(Winograd choice, const UOp& padded, const UOp& weight, int64_t groups, const Numbers& stride, const Numbers& dilation) {
  const auto is_one = [](int64_t n) { return n == 1; };
  if (choice == Winograd::never || !std::ranges::all_of(stride, is_one) || !std::ranges::all_of(dilation, is_one)) return false;
  if (!suits_winograd(padded, weight)) return false;
  return choice == Winograd::always || winograd_pays(padded, weight, groups, choice == Winograd::with_fixed_windows);
}

}  // namespace

UOp conv2d(const UOp& x, const UOp& weight, const UOp& bias, const ConvOptions& options) {
  const Shape ws = shape_of(weight);
  const ConvSizes c = conv_sizes("conv2d", shape_of(x), ws, options.groups);
  const DType out = options.dtype.value_or(common_dtype(x, weight));
  const DType acc = options.dtype.value_or(sum_acc_dtype(out));
  const Shape kernel = tail(ws, 2);
  Numbers sizes;
  for (const SInt& k : kernel) sizes.push_back(k.value());
  const Numbers stride = options.stride.resolve("conv2d", "stride", c.spatial),
                dilation = options.dilation.resolve("conv2d", "dilation", c.spatial);
  check_windows("conv2d", kernel, stride, dilation);
  check_bias("conv2d", bias, ws[0]);
  const UOp padded = ops::pad(tinygrad::cast(x, acc), padding_of("conv2d", options.padding, shape_of(x), c.spatial));
  if (takes_winograd(options.winograd, padded, weight, options.groups, stride, dilation))
    return add_channel_bias(tinygrad::cast(winograd_conv2d(padded, tinygrad::cast(weight, acc), options.groups), out), bias);
  const UOp windows = pool(padded, view_of(sizes), view_of(stride), view_of(dilation), "conv2d");
  const Shape& all = shape_of(windows);
  const Shape positions(all.begin() + 2, all.begin() + 2 + c.spatial), ones(c.spatial, SInt(1));
  // (batch, groups, 1, positions..., in, kernel...) by (groups, out, 1..., in, kernel...).
  Axes order{0, 1, 2};
  for (size_t i = 0; i < c.spatial; ++i) order.push_back(int(4 + i));
  order.push_back(3);
  for (size_t i = 0; i < c.spatial; ++i) order.push_back(int(4 + c.spatial + i));
  const Shape split{c.batch, c.groups, 1, c.in_per_group};
  const UOp left = ops::permute(ops::reshape(windows, with_tail(split, 4, {positions, kernel})), order);
  const Shape grouped{c.groups, c.out_per_group};
  const UOp right = ops::reshape(tinygrad::cast(weight, acc), with_tail(grouped, 2, {ones, Shape{c.in_per_group}, kernel}));
  const UOp y = sum(mul(left, right), last_axes(1 + c.spatial), false, acc);
  return add_channel_bias(tinygrad::cast(ops::reshape(y, with_tail(Shape{c.batch, ws[0]}, 2, {positions})), out), bias);
}

namespace {

/// stride - 1 zeros between the elements of the last axes.
UOp spread(UOp x, std::span<const int64_t> stride) {
  const int first = int(rank_of(x)) - int(stride.size());
  for (int i = 0; i < int(stride.size()); ++i) {
    const int axis = first + i;
    const int64_t s = stride[size_t(i)];
    if (s == 1) continue;
    const SInt n = shape_of(x)[size_t(axis)];
    x = ops::flatten(pad_axis(ops::unsqueeze(x, axis + 1), axis + 1, 0, s - 1), axis, axis + 1);
    x = shrink_axis(x, axis, 0, (n - 1) * SInt(s) + 1);
  }
  return x;
}

}  // namespace

UOp conv_transpose2d(const UOp& x, const UOp& weight, const UOp& bias, const ConvTransposeOptions& o) {
  const Shape& ws = shape_of(weight);
  if (ws.size() < 3 || rank_of(x) != ws.size() || !(ws[0] == shape_of(x)[1]) || o.groups < 1 || !(floor_mod(ws[0], o.groups) == 0))
    throw ShapeError(
        fmt::format("conv_transpose2d: the input {} and the weight {} with {} groups do not fit: the weight is (in, out / groups, ...)",
                    to_string(shape_of(x)), to_string(ws), o.groups));
  const size_t n = ws.size() - 2;
  const Numbers stride = o.stride.resolve("conv_transpose2d", "stride", n),
                dilation = o.dilation.resolve("conv_transpose2d", "dilation", n);
  const Numbers extra = o.output_padding.resolve("conv_transpose2d", "output_padding", n);
  const Pairs padding = spatial_padding("conv_transpose2d", o.padding, ws.size(), n);
  const DType out = common_dtype(x, weight);
  check_windows("conv_transpose2d", tail(ws, 2), stride, dilation);
  check_bias("conv_transpose2d", bias, ws[1] * SInt(o.groups));
  for (size_t i = 0; i < n; ++i) {
    if (extra[i] < 0 || extra[i] >= std::max(stride[i], dilation[i]))
      throw ValueError(fmt::format("conv_transpose2d: the output_padding {} must be less than the stride {} or the dilation {}", extra[i],
                                   stride[i], dilation[i]));
    const SInt whole = (shape_of(x)[2 + i] - 1) * SInt(stride[i]) + (ws[2 + i] - 1) * SInt(dilation[i]) + SInt(1 + extra[i]);
    if (less_now(whole, padding[2 + i].first + padding[2 + i].second))
      throw ShapeError(fmt::format("conv_transpose2d: the padding ({}, {}) cuts off more than the {} elements of axis {} of the output",
                                   to_string(padding[2 + i].first), to_string(padding[2 + i].second), to_string(whole), 2 + i));
  }
  bool spreads = false, covers = true;  // elements of x apart; no rows at the end without any
  for (size_t i = 0; i < n; ++i) spreads |= stride[i] > 1, covers &= extra[i] < stride[i];
  if (is_float(out) && spreads && covers) {
    // What it is the transpose of: between spread out elements most products would be with zeros.
    Shape shape{shape_of(x)[0], ws[1] * SInt(o.groups)};
    for (size_t i = 0; i < n; ++i) {
      const SInt reach = (ws[2 + i] - 1) * SInt(dilation[i]) + 1;
      const auto& [before, after] = padding[2 + i];
      shape.push_back((shape_of(x)[2 + i] - 1) * SInt(stride[i]) + reach - before - after + SInt(extra[i]));
    }
    const UOp any = ops::full(shape, 0.0, out);
    const UOp y = conv2d(any, weight, {}, {.groups = o.groups, .stride = o.stride, .dilation = o.dilation, .padding = o.padding});
    return add_channel_bias(gradient(y, tinygrad::cast(x, out), std::span(&any, 1))[0], bias);
  }
  // The kernel backwards, with inputs and outputs exchanged in each group.
  Axes backwards;
  for (size_t i = 0; i < n; ++i) backwards.push_back(int(3 + i));
  const UOp grouped = ops::transpose(ops::unflatten(weight, 0, Shape{o.groups, -1}), 1, 2);
  const UOp w = ops::flatten(ops::flip(grouped, backwards), 0, 1);
  Pairs amounts(ws.size(), std::pair<SInt, SInt>(0, 0));
  for (size_t i = 0; i < n; ++i) {
    const SInt reach = (ws[2 + i] - 1) * SInt(dilation[i]);
    amounts[2 + i] = {reach - padding[2 + i].first, reach - padding[2 + i].second + SInt(extra[i])};
  }
  const UOp spread_out = ops::pad(spread(x, view_of(stride)), amounts);
  return conv2d(spread_out, w, bias, {.groups = o.groups, .dilation = PerAxis(view_of(dilation))});
}

namespace {

struct PoolSizes {
  std::string_view op;
  Numbers kernel, stride, dilation;
  Pairs padding;       ///< as given
  Pairs with_ceiling;  ///< more at the end for windows that hang over
};

PoolSizes pool_sizes(std::string_view op, const Shape& in, const PoolOptions& o) {
  const size_t count = o.kernel_size.size(), first = in.size() - count;
  if (count == 0 || count > in.size()) throw ShapeError(fmt::format("{}: a kernel of {} axes for {}", op, count, to_string(in)));
  PoolSizes p;
  p.op = op;
  p.kernel = o.kernel_size.resolve(op, "kernel_size", count);
  p.stride = o.stride ? o.stride->resolve(op, "stride", count) : p.kernel;
  p.dilation = o.dilation.resolve(op, "dilation", count);
  check_windows(op, Shape(p.kernel.begin(), p.kernel.end()), p.stride, p.dilation);
  p.padding = p.with_ceiling = padding_of(op, o.padding, in, count);
  for (size_t i = 0; i < count; ++i) {
    const int64_t extent = p.dilation[i] * (p.kernel[i] - 1) + 1;
    if (const auto& [before, after] = p.padding[first + i]; before.value() >= extent || after.value() >= extent)
      throw ValueError(fmt::format("{}: the padding ({}, {}) of axis {} must be less than the {} elements that a window reaches over", op,
                                   to_string(before), to_string(after), first + i, extent));
  }
  for (size_t i = 0; o.ceil_mode && i < count; ++i) {
    const int64_t extent = p.dilation[i] * (p.kernel[i] - 1) + 1, s = p.stride[i];
    const SInt& n = in[first + i];
    auto& [before, after] = p.with_ceiling[first + i];
    const SInt all = ceil_div(n + before + after - extent, s) + 1, begun = ceil_div(n + before, s);
    const SInt windows = min(all, begun);  // the last must not begin in the padding at the end
    after = (windows - 1) * s + extent - n - before;
  }
  return p;
}

UOp windows_of(const UOp& padded, const PoolSizes& p) {
  return pool(padded, view_of(p.kernel), view_of(p.stride), view_of(p.dilation), p.op);
}

}  // namespace

UOp avg_pool2d(const UOp& x, const PoolOptions& o) {
  if (is_float(x.dtype()) && bitsize(x.dtype()) < 32) return tinygrad::cast(avg_pool2d(tinygrad::cast(x, DType::float32), o), x.dtype());
  const Shape& in = shape_of(x);
  const PoolSizes p = pool_sizes("avg_pool2d", in, o);
  const Axes axes = last_axes(p.kernel.size());
  const UOp windows = windows_of(ops::pad(x, p.with_ceiling), p);
  if (o.count_include_pad && !o.ceil_mode) return mean(windows, axes);
  // How many elements each window has: those of x, or of x with its padding but not what hangs over.
  UOp counted = full(in, 1, x.dtype());
  if (o.count_include_pad) counted = ops::pad(counted, p.padding, 1);
  Pairs rest = p.with_ceiling;
  for (size_t i = 0; o.count_include_pad && i < rest.size(); ++i) rest[i] = {0, rest[i].second - p.padding[i].second};
  return div(sum(windows, axes), sum(windows_of(ops::pad(counted, rest), p), axes));
}

UOp max_pool2d(const UOp& x, const PoolOptions& o) {
  const PoolSizes p = pool_sizes("max_pool2d", shape_of(x), o);
  return ops::max(windows_of(ops::pad(x, p.with_ceiling, min_value(x.dtype())), p), last_axes(p.kernel.size()));
}

UOp max_pool2d_indices(const UOp& x, const PoolOptions& o) {
  const Shape& in = shape_of(x);
  const PoolSizes p = pool_sizes("max_pool2d", in, o);
  const size_t count = p.kernel.size();
  const Axes axes = last_axes(count);
  // From memory: computed at two places, the greatest element could be rounded differently and equal none.
  const UOp windows = windows_of(ops::pad(contiguous(x), p.with_ceiling, min_value(x.dtype())), p);
  UOp best = ops::eq(windows, ops::max(windows, axes, true));
  if (is_float(x.dtype())) best = bitwise_or(best, isnan(windows));
  // Positions counted from the end, so that the greatest is the first; padding is 0.
  const Shape space = tail(in, in.size() - count);
  const SInt n = numel(space);
  const UOp from_end = ops::reshape(sub(n, iota(n)), space);
  const Pairs around(p.with_ceiling.begin() + (in.size() - count), p.with_ceiling.end());
  const UOp found = ops::where(best, windows_of(ops::pad(from_end, around), p), 0);
  return tinygrad::cast(sub(n, ops::max(found, axes)), index_dtype(n));
}

UOp max_unpool2d(const UOp& x, const UOp& indices, const PoolOptions& o, const std::optional<Shape>& output_size) {
  const Shape& in = shape_of(x);
  const PoolSizes p = pool_sizes("max_unpool2d", in, o);
  const size_t count = p.kernel.size(), first = in.size() - count;
  if (shape_of(indices) != in || !is_int(indices.dtype()))
    throw ShapeError(fmt::format("max_unpool2d: the indices are {} {}, expects integers of the shape {}", to_string(shape_of(indices)),
                                 repr(indices.dtype()), to_string(in)));
  Shape space;
  for (size_t i = 0; i < count; ++i) {
    const auto& [before, after] = p.padding[first + i];
    space.push_back((in[first + i] - 1) * SInt(p.stride[i]) - before - after + SInt(p.dilation[i] * (p.kernel[i] - 1) + 1));
  }
  if (output_size) {
    if (output_size->size() < count)
      throw ShapeError(fmt::format("max_unpool2d: the output size {} has too few axes", to_string(*output_size)));
    space = tail(*output_size, output_size->size() - count);
  }
  const Shape lead(in.begin(), in.begin() + first);
  const Shape flat = with_tail(lead, first, {Shape{numel(tail(in, first))}}), target = with_tail(lead, first, {Shape{numel(space)}});
  const UOp put = scatter(zeros(target, x.dtype()), -1, ops::reshape(indices, flat), ops::reshape(x, flat));
  return ops::reshape(put, with_tail(lead, first, {space}));
}

}  // namespace tinygrad::ops
