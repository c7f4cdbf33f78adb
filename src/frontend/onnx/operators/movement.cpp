// Operators that move elements: shapes, slices, joins, padding.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators/quantized.h"

namespace tinygrad::onnx {

namespace {

/// The same elements in another shape: on the host where they are known there.
Results reshaped(const Value& v, const Sizes& shape) {
  if (v.kind() == Value::Kind::strings) return {Strings{shape, v.strings().values}};
  if (const HostArray* h = host_of(v)) {
    HostArray out = *h;
    out.shape = shape;
    Value moved = host_value(std::move(out));
    constexpr size_t most_small = 4096;
    if (h->byte_count <= most_small && !is_float_type(h->type)) return {moved};
    Value with_tensor(v.tensor().reshape(shape), v.element_type());
    detail::ValueAccess::set_host(with_tensor, *host_of(moved));
    return {with_tensor};
  }
  const Tensor& x = v.tensor();
  const bool splits_columns = !shape.empty() && x.ndim() > 0 && shape.back() < x.size(-1) && is_of_integer_sums(x);
  return results_like(v, (splits_columns ? x.contiguous() : x).reshape(shape));
}

Results reshape(Call& c) {
  const Sizes in = c.shape(0);
  Sizes shape = c.version() < 5 ? c.attribute("shape", std::vector<int64_t>()) : c.integers(1);
  Sizes known;
  int rest = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !c.flag("allowzero")) {
      if (i >= in.size())
        c.fail(fmt::format("the shape ({}) takes a size from axis {} of ({})", fmt::join(shape, ", "), i, fmt::join(in, ", ")));
      shape[i] = in[i];
    }
    if (shape[i] == -1 && rest < 0)
      rest = int(i);
    else if (shape[i] < 0)
      c.fail(fmt::format("the shape ({})", fmt::join(shape, ", ")));
    else
      known.push_back(shape[i]);
  }
  if (rest >= 0) shape[size_t(rest)] = element_count(in) / std::max<int64_t>(element_count(known), 1);
  if (element_count(shape) != element_count(in))
    throw ShapeError(fmt::format("({}) has {} elements, the shape ({}) has {}", fmt::join(in, ", "), element_count(in),
                                 fmt::join(shape, ", "), element_count(shape)));
  return reshaped(c.value(0), shape);
}

Results flatten(Call& c) {
  const Sizes in = c.shape(0);
  int64_t axis = c.attribute("axis", 1);
  if (axis < 0) axis += int64_t(in.size());
  if (axis < 0 || axis > int64_t(in.size())) c.fail(fmt::format("the axis {} of ({})", axis, fmt::join(in, ", ")));
  return reshaped(c.value(0), {count_of(in, 0, size_t(axis)), count_of(in, size_t(axis), in.size())});
}

std::vector<int64_t> axes_of(const Call& c, size_t input, int64_t input_since = 13) {
  if (c.version() < input_since) return c.attribute("axes", std::vector<int64_t>());
  return c.has(input) ? c.integers(input) : std::vector<int64_t>();
}

Results squeeze(Call& c) {
  const Sizes in = c.shape(0);
  const std::vector<int> axes = normal_axes(c, axes_of(c, 1), in.size());
  Sizes out;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool is_named = std::find(axes.begin(), axes.end(), int(i)) != axes.end();
    if (is_named && in[i] != 1) c.fail(fmt::format("the axis {} of ({}) has more than one element", i, fmt::join(in, ", ")));
    if (!is_named && !(axes.empty() && in[i] == 1)) out.push_back(in[i]);
  }
  return reshaped(c.value(0), out);
}

Results unsqueeze(Call& c) {
  const Sizes in = c.shape(0);
  const std::vector<int64_t> given = axes_of(c, 1);
  std::vector<int> axes = normal_axes(c, given, in.size() + given.size());
  std::sort(axes.begin(), axes.end());
  Sizes out = in;
  for (int a : axes) {
    if (a > int(out.size())) c.fail("an axis occurs twice");
    out.insert(out.begin() + a, 1);
  }
  return reshaped(c.value(0), out);
}

/// Applies a movement of tensors to a tensor of texts by moving its places.
template <class F>
Results moved(const Call& c, const Value& v, F f) {
  if (v.kind() != Value::Kind::strings) return results_like(v, f(v.tensor()));
  std::vector<int64_t> places(v.strings().values.size());
  std::iota(places.begin(), places.end(), 0);
  const Tensor there = f(Tensor(places, v.strings().shape));
  host_count(c, there.shape());
  Strings out{.shape = there.shape()};
  for (int64_t p : there.template tolist<int64_t>()) out.values.push_back(v.strings().values[size_t(p)]);
  return {out};
}

Results transpose(Call& c) {
  const size_t rank = c.rank(0);
  std::vector<int> order;
  for (int64_t a : c.attribute("perm", std::vector<int64_t>())) order.push_back(normal_axis(c, a, rank));
  if (order.empty())
    for (size_t i = rank; i-- > 0;) order.push_back(int(i));
  return moved(c, c.value(0), [&](const Tensor& x) { return x.permute(order); });
}

Tensor broadcast_to(const Tensor& x, const Sizes& shape) {
  const Sizes in = x.shape();
  Sizes lead(shape.size() - in.size(), 1);
  lead.insert(lead.end(), in.begin(), in.end());
  return x.reshape(lead).expand(shape);
}

Results expand(Call& c) {
  const Sizes shapes[] = {c.shape(0), c.integers(1)};
  element_count(shapes[1]);
  const Sizes shape = broadcast_shape(shapes);
  return moved(c, c.value(0), [&](const Tensor& x) { return broadcast_to(x, shape); });
}

Results tile(Call& c) {
  if (c.version() >= 6) {
    const std::vector<int64_t> repeats = c.integers(1);
    return moved(c, c.value(0), [&](const Tensor& x) { return x.repeat(repeats); });
  }
  Sizes repeats(c.rank(0), 1);
  repeats.at(size_t(normal_axis(c, c.integer(2), repeats.size()))) = c.integer(1);
  return moved(c, c.value(0), [&](const Tensor& x) { return x.repeat(repeats); });
}

Results concat_texts(const Call& c, int64_t axis) {
  // Elements are numbered through all inputs.
  std::vector<std::string> all;
  std::vector<Tensor> places;
  for (const Value& v : c.values()) {
    std::vector<int64_t> own(v.strings().values.size());
    std::iota(own.begin(), own.end(), int64_t(all.size()));
    all.insert(all.end(), v.strings().values.begin(), v.strings().values.end());
    places.push_back(Tensor(own, v.strings().shape));
  }
  const Tensor there = Tensor::cat(places, int(axis));
  Strings out{.shape = there.shape()};
  for (int64_t p : there.tolist<int64_t>()) out.values.push_back(all[size_t(p)]);
  return {out};
}

Results concat(Call& c) {
  const int axis = normal_axis(c, c.attribute("axis", 1), c.rank(0));
  if (c.value(0).kind() == Value::Kind::strings) return concat_texts(c, axis);
  if (c.input_count() == 1) return {c.value(0)};
  return results_like(c.value(0), Tensor::cat(c.tensors(), axis));
}

/// Where slices begin and end along an axis of n elements, as the operator bounds them.
struct Cut {
  int64_t begin, end, step;
};
Cut cut_of(const Call& c, int64_t begin, int64_t end, int64_t step, int64_t n) {
  if (step == 0) c.fail("a step of 0");
  step = std::clamp<int64_t>(step, -n - 1, n + 1);  // none need be longer than the axis
  const auto bounded = [&](int64_t at) {
    if (at < 0) at = at < -n ? -1 : at + n;
    return step > 0 ? std::clamp<int64_t>(at, 0, n) : std::clamp<int64_t>(at, -1, n - 1);
  };
  return {bounded(begin), bounded(end), step};
}

Tensor cut(const Tensor& x, int axis, const Cut& by) {
  const int64_t n = x.size(axis);
  std::vector<std::pair<int64_t, int64_t>> bounds;
  for (int64_t s : x.shape()) bounds.push_back({0, s});
  if (by.step > 0) {
    bounds[size_t(axis)] = {by.begin, std::max(by.begin, by.end)};
    Tensor part = x.shrink(bounds);
    if (by.step == 1) return part;
    std::vector<Index> indices(size_t(axis), Index(Slice{}));
    indices.emplace_back(Slice{.start = {}, .stop = {}, .step = std::min<int64_t>(by.step, std::max<int64_t>(n, 1))});
    return part.get_item(indices);
  }
  const Cut flipped{n - 1 - by.begin, n - 1 - by.end, -by.step};
  return cut(x.flip(axis), axis, flipped);
}

Results slice(Call& c) {
  const Sizes in = c.shape(0);
  std::vector<int64_t> starts, ends, axes, steps;
  if (c.version() < 10) {
    starts = c.required_integers("starts");
    ends = c.required_integers("ends");
    axes = c.attribute("axes", axes);
  } else {
    starts = c.integers(1);
    ends = c.integers(2);
    if (c.has(3)) axes = c.integers(3);
    if (c.has(4)) steps = c.integers(4);
  }
  if (axes.empty()) axes.resize(starts.size()), std::iota(axes.begin(), axes.end(), 0);
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.fail(fmt::format("{} starts, {} ends, {} axes and {} steps", starts.size(), ends.size(), axes.size(), steps.size()));
  return moved(c, c.value(0), [&](Tensor x) {
    for (size_t i = 0; i < starts.size(); ++i) {
      const int axis = normal_axis(c, axes[i], in.size());
      x = cut(x, axis, cut_of(c, starts[i], ends[i], steps[i], in[size_t(axis)]));
    }
    return x;
  });
}

Results split(Call& c) {
  const Sizes in = c.shape(0);
  const int axis = normal_axis(c, c.attribute("axis", 0), in.size());
  const int64_t n = in[size_t(axis)];
  Sizes sizes;
  if (c.version() >= 13 ? c.has(1) : c.has_attribute("split"))
    sizes = c.version() >= 13 ? c.integers(1) : c.attribute("split", sizes);
  else if (c.version() < 13 && c.has(1))  // version 1
    sizes = c.integers(1);
  if (sizes.empty()) {
    const int64_t count = c.attribute("num_outputs", int64_t(c.output_count()));
    if (count < 1 || count > int64_t(c.output_count())) c.fail(fmt::format("{} outputs", count));
    const int64_t size = (n + count - 1) / count;
    for (int64_t i = 0; i < count; ++i) sizes.push_back(std::clamp<int64_t>(n - i * size, 0, size));
  }
  int64_t left = n;
  for (int64_t size : sizes) left = size < 0 || size > left ? -1 : left - size;
  if (left != 0) c.fail(fmt::format("the sizes {} of an axis of {} elements", fmt::join(sizes, ", "), n));
  Results out;
  int64_t at = 0;
  for (int64_t size : sizes) {
    const Cut by{at, at + size, 1};
    at += size;
    if (const HostArray* h = host_of(c.value(0)); h && in.size() == 1 && !is_float_type(h->type)) {
      const size_t width = itemsize(h->dtype());
      out.push_back(host_value(HostArray::of_bytes(h->type, {size}, {h->bytes.get() + size_t(by.begin) * width, size_t(size) * width})));
      continue;
    }
    out.push_back(moved(c, c.value(0), [&](const Tensor& x) { return cut(x, axis, by); })[0]);
  }
  return out;
}

PadMode pad_mode(const Call& c, const std::string& name) {
  if (name == "constant") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "edge") return PadMode::replicate;
  if (name == "wrap") return PadMode::circular;
  c.fail(fmt::format("the mode '{}'", name));
}

/// Padding that may be longer than the axis, by indices of where its elements come from.
Tensor pad_by_indices(const Call& c, const Tensor& x, int axis, int64_t before, int64_t after, PadMode mode) {
  const int64_t n = x.size(axis);
  if (n == 0) c.fail(fmt::format("axis {} has no elements to pad with", axis));
  host_count(c, {before});
  host_count(c, {after});
  std::vector<int64_t> from;
  for (int64_t i = -before; i < n + after; ++i) {
    const int64_t period = mode == PadMode::reflect ? std::max<int64_t>(2 * (n - 1), 1) : n;
    const int64_t in_period = ((i % period) + period) % period;
    from.push_back(mode == PadMode::replicate ? std::clamp<int64_t>(i, 0, n - 1) : in_period < n ? in_period : period - in_period);
  }
  std::vector<Index> indices(size_t(axis), Index(Slice{}));
  indices.emplace_back(Tensor(from));
  return x.get_item(indices);
}

Results pad(Call& c) {
  const Sizes in = c.shape(0);
  const size_t rank = in.size();
  const bool by_inputs = c.version() >= 11;
  std::vector<int64_t> pads = by_inputs ? c.integers(1) : c.attribute(c.version() < 2 ? "paddings" : "pads", std::vector<int64_t>());
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (c.has(3)) axes = normal_axes(c, c.integers(3), rank);
  if (pads.size() != 2 * axes.size()) c.fail(fmt::format("{} amounts for {} axes", pads.size(), axes.size()));
  const PadMode mode = pad_mode(c, c.attribute("mode", "constant"));
  const Value& v = c.value(0);
  constexpr int64_t most = int64_t{1} << 48;
  for (int64_t p : pads)
    if (p < -most || p > most) c.fail(fmt::format("{} elements of padding", p));
  std::vector<std::pair<int64_t, int64_t>> amounts(rank, {0, 0});
  for (size_t i = 0; i < axes.size(); ++i) amounts[size_t(axes[i])] = {pads[i], pads[i + axes.size()]};
  if (mode == PadMode::constant) {
    const Tensor fill = by_inputs && c.has(2) ? c.tensor(2).reshape({}) : Tensor();
    if (fill.defined()) return results_like(v, v.tensor().pad(amounts, fill.cast(v.tensor().dtype()), mode));
    if (is_float(v.tensor().dtype())) return results_like(v, v.tensor().pad(amounts, by_inputs ? 0.0 : c.attribute("value", 0.0), mode));
    return results_like(v, v.tensor().pad(amounts));
  }
  Tensor x = v.tensor();
  for (size_t i = 0; i < rank; ++i) {
    auto [before, after] = amounts[i];
    if (before < 0 || after < 0) {
      x = cut(x, int(i), {std::max<int64_t>(-before, 0), x.size(int(i)) - std::max<int64_t>(-after, 0), 1});
      before = std::max<int64_t>(before, 0);
      after = std::max<int64_t>(after, 0);
    }
    if (before || after) x = pad_by_indices(c, x, int(i), before, after, mode);
  }
  return results_like(v, x);
}

Results center_crop_pad(Call& c) {
  const Tensor& x = c.tensor(0);
  const std::vector<int64_t> sizes = c.integers(1);
  element_count(sizes);
  std::vector<int64_t> named = c.attribute("axes", std::vector<int64_t>());
  if (named.empty()) named.resize(size_t(x.ndim())), std::iota(named.begin(), named.end(), 0);
  const std::vector<int> axes = normal_axes(c, named, size_t(x.ndim()));
  if (axes.size() != sizes.size()) c.fail(fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
  std::vector<std::pair<int64_t, int64_t>> amounts(size_t(x.ndim()), {0, 0});
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 0) c.fail(fmt::format("the size {} of axis {} is negative", sizes[i], axes[i]));
    const int64_t more = sizes[i] - x.size(axes[i]);
    // The odd element is cut, or added, at the end.
    const int64_t before = more >= 0 ? more / 2 : -(-more / 2);
    amounts[size_t(axes[i])] = {before, more - before};
  }
  return results_like(c.value(0), x.pad(amounts));
}

/// Of DepthToSpace and SpaceToDepth, whose input has four axes.
int64_t block_size(const Call& c) {
  const int64_t b = c.required_integer("blocksize"), most = int64_t{1} << 20;
  if (b < 1 || b > most) c.fail(fmt::format("blocksize is {}, expected 1 to {}", b, most));
  if (c.tensor(0).ndim() != 4) c.fail(fmt::format("its input has {} axes, expected 4", c.tensor(0).ndim()));
  return b;
}
Results depth_to_space(Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t b = block_size(c), n = x.size(0), depth = x.size(1) / (b * b), h = x.size(2), w = x.size(3);
  if (depth * b * b != x.size(1)) c.fail(fmt::format("{} channels are not a multiple of {} * {}", x.size(1), b, b));
  const bool depth_first = c.choice("mode", {"DCR", "CRD"}) == "DCR";
  const Tensor moved = depth_first ? x.reshape({n, b, b, depth, h, w}).permute({0, 3, 4, 1, 5, 2})
                                   : x.reshape({n, depth, b, b, h, w}).permute({0, 1, 4, 2, 5, 3});
  return results(moved.reshape({n, depth, h * b, w * b}));
}
Results space_to_depth(Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t b = block_size(c), n = x.size(0), depth = x.size(1), h = x.size(2) / b, w = x.size(3) / b;
  if (h * b != x.size(2) || w * b != x.size(3))
    c.fail(fmt::format("height {} and width {} are not multiples of {}", x.size(2), x.size(3), b));
  const Tensor split = x.reshape({n, depth, h, b, w, b});
  return results((c.choice("mode", {"DCR", "CRD"}) == "DCR" ? split.permute({0, 3, 5, 1, 2, 4}) : split.permute({0, 1, 3, 5, 2, 4}))
                     .reshape({n, depth * b * b, h, w}));
}

Results shape(Call& c) {
  const Sizes in = c.shape(0);
  const int64_t n = int64_t(in.size());
  const auto bounded = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n); };
  const int64_t start = bounded(c.attribute("start", 0)), end = bounded(c.attribute("end", n));
  return {host_integers(Sizes(in.begin() + start, in.begin() + std::max(start, end)))};
}
Results size(Call& c) { return {host_integer(element_count(c.shape(0)))}; }

Results identity(Call& c) { return {c.value(0)}; }

Results triangle(Call& c) {
  const int64_t k = c.has(1) ? c.integer(1) : 0;
  return results(c.flag("upper", true) ? c.tensor(0).triu(k) : c.tensor(0).tril(k));
}

/// The first elements along the time axis backwards, as many as the length of the sequence says.
Results reverse_sequence(Call& c) {
  const Tensor &x = c.tensor(0), &lengths = c.tensor(1);
  const int time = normal_axis(c, c.attribute("time_axis", 0), size_t(x.ndim())),
            batch = normal_axis(c, c.attribute("batch_axis", 1), size_t(x.ndim()));
  Sizes along_time(size_t(x.ndim()), 1), along_batch(size_t(x.ndim()), 1);
  along_time[size_t(time)] = x.size(time);
  along_batch[size_t(batch)] = x.size(batch);
  const Tensor at = Tensor::arange(x.size(time), {.dtype = DType::int64}).reshape(along_time);
  const Tensor length = lengths.cast(DType::int64).reshape(along_batch);
  return results_like(c.value(0), x.gather(time, (at < length).where(length - 1 - at, at).expand(x.shape())));
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "CenterCropPad", 18, center_crop_pad},
    {onnx_domain, "Concat", 1, concat},
    {onnx_domain, "DepthToSpace", 1, depth_to_space},
    {onnx_domain, "Expand", 8, expand},
    {onnx_domain, "Flatten", 1, flatten},
    {onnx_domain, "Identity", 1, identity},
    {onnx_domain, "Pad", 1, pad},
    {onnx_domain, "Reshape", 1, reshape},
    {onnx_domain, "ReverseSequence", 10, reverse_sequence},
    {onnx_domain, "Shape", 1, shape},
    {onnx_domain, "Size", 1, size},
    {onnx_domain, "Slice", 1, slice},
    {onnx_domain, "SpaceToDepth", 1, space_to_depth},
    {onnx_domain, "Split", 1, split},
    {onnx_domain, "Squeeze", 1, squeeze},
    {onnx_domain, "Tile", 1, tile},
    {onnx_domain, "Transpose", 1, transpose},
    {onnx_domain, "Trilu", 14, triangle},
    {onnx_domain, "Unsqueeze", 1, unsqueeze},
};

}  // namespace

std::span<const OperatorRow> movement_operators() { return rows; }

}  // namespace tinygrad::onnx
