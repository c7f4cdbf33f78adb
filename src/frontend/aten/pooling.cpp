// Pooling over windows of one to three spatial axes, and its gradients.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "frontend/aten/convolution.h"

namespace tinygrad::aten {

namespace {

/// The windows of a call along each spatial axis, the last ones.
struct Windows {
  size_t axes = 0;
  Sizes kernel = {}, stride = {}, padding = {}, dilation = {}, input = {}, output = {};
  bool ceil_mode = false;
};

/// How many windows there are; with ceil_mode also one that begins inside and ends behind the padding.
int64_t window_count(const Windows& w, size_t i) {
  const int64_t span = w.dilation[i] * (w.kernel[i] - 1) + 1, room = w.input[i] + 2 * w.padding[i] - span;
  if (room < 0 && !w.ceil_mode) return 0;
  int64_t count = (room + (w.ceil_mode ? w.stride[i] - 1 : 0)) / w.stride[i] + 1;
  if (w.ceil_mode && (count - 1) * w.stride[i] >= w.input[i] + w.padding[i]) --count;
  return count;
}
Windows windows_of(const Call& c, const Tensor& x, size_t axes) {
  if (x.ndim() != int(axes) + 1 && x.ndim() != int(axes) + 2) c.fail(fmt::format("a tensor of {} axes", x.ndim()));
  Windows w{.axes = axes};
  w.kernel = c.integers("kernel_size", axes);
  w.stride = c.integers("stride", axes, w.kernel);
  w.padding = c.integers("padding", axes);
  w.dilation = c.declares("dilation") ? c.integers("dilation", axes) : Sizes(axes, 1);
  w.ceil_mode = c.flag("ceil_mode");
  const Sizes shape = x.shape();
  w.input.assign(shape.end() - ptrdiff_t(axes), shape.end());
  for (size_t i = 0; i < axes; ++i) {
    if (w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.padding[i] < 0) c.fail("a window that there is not");
    if (w.padding[i] > w.kernel[i] / 2) c.fail("the padding is more than half of the window");
    w.output.push_back(window_count(w, i));
    if (w.output[i] < 1) throw ShapeError(fmt::format("{}: no window of {} fits {} elements", c.name(), w.kernel[i], w.input[i]));
  }
  return w;
}
/// What windows read: with padding on both sides, and without what no window reaches.
Tensor padded(const Tensor& x, const Windows& w, const Operand& value) {
  ExtentPairs around(size_t(x.ndim()), {0, 0});
  for (size_t i = 0; i < w.axes; ++i) {
    const int64_t reach = (w.output[i] - 1) * w.stride[i] + w.dilation[i] * (w.kernel[i] - 1) + 1;
    around[around.size() - w.axes + i] = {w.padding[i], reach - w.padding[i] - w.input[i]};
  }
  return x.pad(around, value);
}
Tensor with_batch(const Tensor& x, const Windows& w) { return x.ndim() == int(w.axes) + 1 ? x.unsqueeze(0) : x; }
Tensor like(const Tensor& out, const Tensor& x) { return out.ndim() == x.ndim() ? out : out.squeeze(0); }

/// A vector that stands along one of the spatial axes.
Tensor along(const std::vector<double>& values, const Windows& w, size_t i, const Tensor& like_x) {
  Sizes shape(w.axes, 1);
  shape[i] = int64_t(values.size());
  return Tensor(values, shape, {.dtype = like_x.dtype(), .device = like_x.device()});
}

Tensor averages(const Call& c, const Tensor& given, const Windows& w) {
  const Tensor x = padded(with_batch(given, w), w, 0);
  const Tensor means = x.avg_pool2d({.kernel_size = w.kernel, .stride = w.stride});
  const bool include_pad = c.flag("count_include_pad");
  double volume = 1;
  for (int64_t k : w.kernel) volume *= double(k);
  if (c.declares("divisor_override") && c.has("divisor_override")) {
    if (c.integer("divisor_override") == 0) c.fail("a divisor of 0");
    return like(means * (volume / c.number("divisor_override")), given);
  }
  Tensor out = means;
  for (size_t i = 0; i < w.axes; ++i) {
    std::vector<double> factors;
    for (int64_t o = 0; o < w.output[i]; ++o) {
      const int64_t begin = o * w.stride[i] - w.padding[i], end = begin + w.kernel[i];
      const int64_t count =
          include_pad ? std::min(end, w.input[i] + w.padding[i]) - begin : std::min(end, w.input[i]) - std::max<int64_t>(begin, 0);
      factors.push_back(double(w.kernel[i]) / double(count));
    }
    if (std::ranges::any_of(factors, [](double f) { return f != 1; })) out = out * along(factors, w, i, out);
  }
  return like(out, given);
}
Results avg_pool(const Call& c, size_t axes) {
  const Tensor x = c.tensor("self");
  if (!is_float(x.dtype())) c.fail("only for floats");
  return one(averages(c, x.cast(wide_type(x.dtype())), windows_of(c, x, axes)).cast(x.dtype()));
}
Results avg_pool_backward(const Call& c, size_t axes) {
  const Tensor x = c.tensor("self"), grad = c.tensor("grad_output");
  const Windows w = windows_of(c, x, axes);
  const auto f = [&](std::span<const Tensor> at) { return averages(c, at[0], w); };
  return one(gradients(c, f, {x.cast(wide_type(x.dtype()))}, grad)[0].cast(x.dtype()));
}

/// The greatest elements, and their places in the flattened spatial axes.
Results max_pool_with_indices(const Call& c, size_t axes) {
  const Tensor x = c.tensor("self");
  const Windows w = windows_of(c, x, axes);
  const auto [values, indices] = with_batch(x, w).max_pool2d_with_indices(
      {.kernel_size = w.kernel, .stride = w.stride, .dilation = w.dilation, .padding = w.padding, .ceil_mode = w.ceil_mode});
  return {like(values, x).cast(x.dtype()), like(indices, x).cast(DType::int64)};
}
Results max_pool(const Call& c, size_t axes) {
  const Tensor x = c.tensor("self");
  const Windows w = windows_of(c, x, axes);
  const Tensor out = with_batch(x, w).max_pool2d(
      {.kernel_size = w.kernel, .stride = w.stride, .dilation = w.dilation, .padding = w.padding, .ceil_mode = w.ceil_mode});
  return one(like(out, x).cast(x.dtype()));
}

/// For each place in a window: the gradients of windows whose greatest element stood there, at the elements that they read.
Results max_pool_backward(const Call& c, size_t axes) {
  const Tensor x = c.tensor("self");
  const Windows w = windows_of(c, x, axes);
  const Tensor grad = with_batch(c.tensor("grad_output"), w).cast(wide_type(x.dtype())), indices = with_batch(c.tensor("indices"), w);
  const auto options = TensorOptions{.dtype = DType::int64, .device = x.device()};
  int64_t places = 1;
  for (int64_t k : w.kernel) places *= k;
  Tensor out;
  for (int64_t place = 0; place < places; ++place) {
    Tensor flat = Tensor::full({}, 0, options);
    Sizes offsets(axes);
    for (size_t i = axes, left = size_t(place); i-- > 0; left /= size_t(w.kernel[i]))
      offsets[i] = int64_t(left % size_t(w.kernel[i])) * w.dilation[i];
    for (size_t i = 0; i < axes; ++i) {
      Sizes shape(axes, 1);
      shape[i] = w.output[i];
      flat = flat * w.input[i] + (Tensor::arange(w.output[i], options) * w.stride[i] + (offsets[i] - w.padding[i])).reshape(shape);
    }
    Tensor part = indices.eq(flat).where(grad, grad.zeros_like());
    for (size_t i = 0; i < axes; ++i) {
      // The windows stand `stride` apart, and the first one reads this place at offset - padding.
      const auto axis = size_t(2) + i;
      Sizes shape = part.shape(), between = shape;
      between.insert(between.begin() + ptrdiff_t(axis) + 1, 1);
      ExtentPairs gaps(between.size(), {0, 0});
      gaps[axis + 1] = {0, w.stride[i] - 1};
      shape[axis] *= w.stride[i];
      part = part.reshape(between).pad(gaps).reshape(shape);
      const int64_t before = offsets[i] - w.padding[i];
      ExtentPairs around(shape.size(), {0, 0});
      around[axis] = {before, w.input[i] - shape[axis] - before};
      part = part.pad(around);
    }
    out = out.defined() ? out + part : part;
  }
  return one(like(out, x).cast(x.dtype()));
}

/// Output i of an adaptive pooling takes the elements from floor(i * in / out) to ceil((i + 1) * in / out).
struct Bounds {
  int64_t begin, end;
};
Bounds bounds_of(int64_t i, int64_t input, int64_t output) { return {i * input / output, ((i + 1) * input + output - 1) / output}; }
Sizes adaptive_sizes(const Call& c, const Tensor& x, size_t axes) {
  Sizes out = c.integers("output_size", axes);
  if (x.ndim() != int(axes) + 1 && x.ndim() != int(axes) + 2) c.fail(fmt::format("a tensor of {} axes", x.ndim()));
  for (size_t i = 0; i < axes; ++i)
    if (c.count_of(out[i]) < 1 || x.size(int(i) - int(axes)) < 1) c.fail("a size of 0");
  return out;
}
/// The windows along an axis as a new last axis, with the last element repeated where one is shorter; and where its elements stand.
Tensor adaptive_windows(const Tensor& x, int axis, int64_t output) {
  const int64_t input = x.size(axis);
  int64_t longest = 0;
  for (int64_t o = 0; o < output; ++o) longest = std::max(longest, bounds_of(o, input, output).end - bounds_of(o, input, output).begin);
  std::vector<int64_t> at;
  for (int64_t o = 0; o < output; ++o)
    for (int64_t k = 0; k < longest; ++k)
      at.push_back(std::min(bounds_of(o, input, output).begin + k, bounds_of(o, input, output).end - 1));
  std::vector<Index> index(size_t(x.ndim()), Index(Slice{}));
  index[size_t(axis)] = Tensor(at, {.device = x.device()});
  Sizes shape = x.shape();
  shape[size_t(axis)] = output;
  shape.insert(shape.begin() + axis + 1, longest);
  std::vector<int> order;
  for (int i = 0; i < int(shape.size()); ++i)
    if (i != axis + 1) order.push_back(i);
  order.push_back(axis + 1);
  return x.get_item(index).reshape(shape).permute(order);
}
/// Of the elements of each window alone, so that what is not finite stays where it is.
Tensor window_means(const Tensor& x, int axis, int64_t output) {
  const Tensor windows = adaptive_windows(x, axis, output);
  std::vector<int64_t> lengths;
  for (int64_t o = 0; o < output; ++o) lengths.push_back(bounds_of(o, x.size(axis), output).end - bounds_of(o, x.size(axis), output).begin);
  Sizes shape(size_t(windows.ndim()), 1);
  shape[size_t(axis)] = output;
  const Tensor length = Tensor(lengths, shape, {.device = x.device()});
  const Tensor inside = Tensor::arange(windows.size(-1), {.device = x.device()}) < length;
  return inside.where(windows, windows.zeros_like()).sum(-1) / length.squeeze(-1).cast(x.dtype());
}
Tensor adaptive_average(const Tensor& x, const Sizes& output) {
  Tensor out = x;
  bool even = true;
  Sizes kernel;
  for (size_t i = 0; i < output.size(); ++i) {
    const int64_t input = x.size(int(i) - int(output.size()));
    even = even && input % output[i] == 0;
    kernel.push_back(input / output[i]);
  }
  if (even) {
    const bool batched = x.ndim() == int(output.size()) + 2;
    const Tensor pooled = (batched ? x : x.unsqueeze(0)).avg_pool2d({.kernel_size = kernel, .stride = kernel});
    return batched ? pooled : pooled.squeeze(0);
  }
  for (size_t i = 0; i < output.size(); ++i) {
    const int axis = x.ndim() - int(output.size()) + int(i);
    out = window_means(out, axis, output[i]);
  }
  return out;
}
Results adaptive_avg_pool(const Call& c, size_t axes) {
  const Tensor x = c.tensor("self");
  return one(adaptive_average(x.cast(wide_type(x.dtype())), adaptive_sizes(c, x, axes)).cast(x.dtype()));
}
Results adaptive_avg_pool_backward(const Call& c, size_t axes) {
  const Tensor x = c.tensor("self"), grad = c.tensor("grad_output");
  const Sizes shape = grad.shape(), output(shape.end() - ptrdiff_t(axes), shape.end());
  const auto f = [&](std::span<const Tensor> at) { return adaptive_average(at[0], output); };
  return one(gradients(c, f, {x.cast(wide_type(x.dtype()))}, grad)[0].cast(x.dtype()));
}
Results adaptive_max_pool(const Call& c, size_t axes) {
  const Tensor x = c.tensor("self");
  const Sizes output = adaptive_sizes(c, x, axes), shape = x.shape();
  const Sizes spatial(shape.end() - ptrdiff_t(axes), shape.end());
  int64_t count = 1;
  for (int64_t s : spatial) count *= s;
  Tensor values = x, places = Tensor::arange(count, {.dtype = DType::int64, .device = x.device()}).reshape(spatial).expand(shape);
  for (size_t i = 0; i < axes; ++i) {
    const int axis = x.ndim() - int(axes) + int(i);
    values = adaptive_windows(values, axis, output[i]);
    places = adaptive_windows(places, axis, output[i]);
  }
  // The windows' own axes are the last ones, in order, so that the first of the greatest comes first.
  values = values.flatten(-int(axes), -1);
  places = places.flatten(-int(axes), -1);
  const Tensor found = values.argmax(-1, {.keepdim = true});
  return {values.max(-1).cast(x.dtype()), places.gather(-1, found).squeeze(-1)};
}

}  // namespace

std::vector<Row> pooling_operators() {
  std::vector<Row> rows;
  const auto add = [&](std::string_view schema, Results (*run)(const Call&, size_t), size_t axes) {
    rows.push_back({schema, [run, axes](const Call& c) { return run(c, axes); }});
  };
  add("aten.avg_pool1d.default(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool "
      "count_include_pad=True)",
      avg_pool, 1);
  add("aten.avg_pool2d.default(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool "
      "count_include_pad=True, int? divisor_override=None)",
      avg_pool, 2);
  add("aten.avg_pool3d.default(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool "
      "count_include_pad=True, int? divisor_override=None)",
      avg_pool, 3);
  add("aten.avg_pool2d_backward.default(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool "
      "ceil_mode, "
      "bool count_include_pad, int? divisor_override)",
      avg_pool_backward, 2);
  add("aten.avg_pool3d_backward.default(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool "
      "ceil_mode, "
      "bool count_include_pad, int? divisor_override)",
      avg_pool_backward, 3);
  add("aten.max_pool1d.default(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool "
      "ceil_mode=False)",
      max_pool, 1);
  add("aten.max_pool2d.default(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
      "ceil_mode=False)",
      max_pool, 2);
  add("aten.max_pool3d.default(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool "
      "ceil_mode=False)",
      max_pool, 3);
  add("aten.max_pool1d_with_indices.default(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool "
      "ceil_mode=False)",
      max_pool_with_indices, 1);
  add("aten.max_pool2d_with_indices.default(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool "
      "ceil_mode=False)",
      max_pool_with_indices, 2);
  add("aten.max_pool3d_with_indices.default(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool "
      "ceil_mode=False)",
      max_pool_with_indices, 3);
  add("aten.max_pool2d_with_indices_backward.default(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
      "int[2] dilation, bool ceil_mode, Tensor indices)",
      max_pool_backward, 2);
  add("aten.max_pool3d_with_indices_backward.default(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, "
      "int[3] dilation, bool ceil_mode, Tensor indices)",
      max_pool_backward, 3);
  add("aten.adaptive_avg_pool1d.default(Tensor self, int[1] output_size)", adaptive_avg_pool, 1);
  add("aten.adaptive_avg_pool2d.default(Tensor self, SymInt[2] output_size)", adaptive_avg_pool, 2);
  add("aten.adaptive_avg_pool3d.default(Tensor self, SymInt[3] output_size)", adaptive_avg_pool, 3);
  add("aten._adaptive_avg_pool2d.default(Tensor self, SymInt[2] output_size)", adaptive_avg_pool, 2);
  add("aten._adaptive_avg_pool3d.default(Tensor self, SymInt[3] output_size)", adaptive_avg_pool, 3);
  add("aten._adaptive_avg_pool2d_backward.default(Tensor grad_output, Tensor self)", adaptive_avg_pool_backward, 2);
  add("aten._adaptive_avg_pool3d_backward.default(Tensor grad_output, Tensor self)", adaptive_avg_pool_backward, 3);
  add("aten.adaptive_max_pool1d.default(Tensor self, int[1] output_size)", adaptive_max_pool, 1);
  add("aten.adaptive_max_pool2d.default(Tensor self, int[2] output_size)", adaptive_max_pool, 2);
  add("aten.adaptive_max_pool3d.default(Tensor self, int[3] output_size)", adaptive_max_pool, 3);
  return rows;
}

}  // namespace tinygrad::aten
