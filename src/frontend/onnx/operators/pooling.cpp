// Poolings.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators/window.h"

namespace tinygrad::onnx {

namespace {

Geometry pool_geometry(const Call& c) {
  const Extents in = c.tensor(0).symbolic_shape();
  if (in.size() < 3) c.fail(fmt::format("expects spatial axes, got {}", c.tensor(0).to_string()));
  Extents spatial;
  spatial.assign(in.begin() + 2, in.end());
  Geometry g = geometry_of(c, spatial, {});
  g.rounds_up = c.flag("ceil_mode");
  for (size_t i = 0; i < g.axes(); ++i)
    if (g.begin[i] < 0 || g.end[i] < 0) c.fail("a negative padding");
  return g;
}

std::vector<int> last_axes(size_t count) {
  std::vector<int> out;
  for (size_t i = 0; i < count; ++i) out.push_back(-1 - int(i));
  return out;
}

std::vector<int> spatial_axes(const Tensor& x) {
  std::vector<int> out;
  for (int i = 2; i < x.ndim(); ++i) out.push_back(i);
  return out;
}

/// The place of the greatest element of each window in the whole tensor, its axes in the order of storage or the spatial ones from the
/// last.
Tensor indices_of_greatest(const Tensor& in_windows, const Tensor& x, const Geometry& g, bool is_column_major) {
  const size_t n = g.axes();
  Tensor rest = in_windows.flatten(-int(n)).argmax(-1).cast(DType::int64);
  const Sizes out = rest.shape();
  std::vector<Tensor> at(n);
  for (size_t i = n; i-- > 0;) {
    Sizes along(out.size(), 1);
    along[i + 2] = out[i + 2];
    const Tensor start = (Tensor::arange(out[i + 2], {.dtype = DType::int64}) * g.strides[i] - g.begin[i]).reshape(along);
    at[i] = start + rest.mod(g.kernel[i]) * g.dilations[i];
    rest = rest.div(g.kernel[i], Rounding::floor);
  }
  Sizes along(out.size(), 1);
  along[0] = out[0];
  along[1] = out[1];
  Tensor place = Tensor::arange(out[0] * out[1], {.dtype = DType::int64}).reshape(along);
  Tensor inner;
  for (size_t k = 0; k < n; ++k) {
    const size_t i = is_column_major ? n - 1 - k : k;
    inner = inner.defined() ? inner * x.size(int(i) + 2) + at[i] : at[i];
  }
  int64_t plane = 1;
  for (size_t i = 0; i < n; ++i) plane *= x.size(int(i) + 2);
  return place * plane + inner;
}

Operand least_of(const Tensor& x) {
  if (x.is_floating_point()) return -std::numeric_limits<double>::infinity();
  return integer_range(element_type_of(x.dtype())).first;
}

Results max_pool(Call& c) {
  const Tensor& x = c.tensor(0);
  const Geometry g = pool_geometry(c);
  const Tensor all = windows(x, g, least_of(x));
  Results out = results(all.max(last_axes(g.axes())));
  if (c.wants(1)) out.push_back(Value(indices_of_greatest(all, x, g, c.flag("storage_order"))));
  return out;
}

/// How many elements windows along an axis have whose size is known when kernels run, as window_sizes() counts them.
Tensor symbolic_window_sizes(const Extent& n, const Geometry& g, size_t axis, bool counts_padding) {
  if (counts_padding || (g.begin[axis] == 0 && g.end[axis] == 0)) return Tensor::full({1}, double(g.kernel[axis]));
  const Extent count = (n + g.begin[axis] + g.end[axis] - g.span(axis)) / g.strides[axis] + 1;
  const Tensor start = Tensor::arange(0, count, 1, {.dtype = DType::int64}) * g.strides[axis] - g.begin[axis];
  const auto taps = [&](const Extent& to) {
    const Tensor steps = Tensor::full({1}, to + (g.dilations[axis] - 1), {.dtype = DType::int64}) - start;
    return steps.div(g.dilations[axis], Rounding::floor).clamp(0, g.kernel[axis]);
  };
  return (taps(n) - taps(0)).cast(DType::float32);
}

/// How many elements a window has: those of the tensor and, if they count, of its padding, but not what is beyond it.
Tensor window_sizes(const Tensor& x, const Geometry& g, bool counts_padding) {
  Tensor out = Tensor::full({}, 1.0, {.dtype = DType::float32});
  for (size_t i = 0; i < g.axes(); ++i) {
    if (const Extent size = x.symbolic_shape()[i + 2]; !size.known()) {
      const Tensor sizes = symbolic_window_sizes(size, g, i, counts_padding);
      Extents along(Sizes(g.axes(), 1));
      along[i] = sizes.symbolic_shape()[0];
      out = out * sizes.reshape(along);
      continue;
    }
    const int64_t n = x.size(int(i) + 2), count = g.outputs(i, n);
    const int64_t first = counts_padding ? -g.begin[i] : 0, last = counts_padding ? n + g.end[i] : n;
    std::vector<float> sizes;
    for (int64_t o = 0; o < count; ++o) {
      // The taps before the place `to`.
      const int64_t start = o * g.strides[i] - g.begin[i], step = g.dilations[i];
      const auto taps = [&](int64_t to) { return std::clamp<int64_t>((to - start + step - 1) / step, 0, g.kernel[i]); };
      sizes.push_back(float(start >= last ? 0 : taps(last) - (start >= first ? 0 : taps(first))));
    }
    Sizes along(g.axes(), 1);
    along[i] = count;
    const bool is_same = std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
    out = is_same && !sizes.empty() ? out * double(sizes[0]) : out * Tensor(sizes, along);
  }
  return out;
}

Results average_pool(Call& c) {
  const Tensor& x = c.tensor(0);
  const Geometry g = pool_geometry(c);
  const DType wide = x.dtype() == DType::float64 ? DType::float64 : DType::float32;
  const Tensor sums = windows(x, g, 0).cast(wide).sum(last_axes(g.axes()));
  return results((sums / window_sizes(x, g, c.flag("count_include_pad")).cast(wide)).cast(x.dtype()));
}

Tensor p_norm(const Tensor& x, const std::vector<int>& axes, double p, bool keepdim) {
  const ReduceOptions options{.keepdim = keepdim, .dtype = {}};
  if (p == 1) return x.abs().sum(axes, options);
  if (p == 2) return (x * x).sum(axes, options).sqrt();
  return x.abs().pow(p).sum(axes, options).pow(1 / p);
}
double order_of(const Call& c) {
  const double p = c.version() < 2 ? c.attribute("p", 2.0) : double(c.attribute("p", 2));
  if (!(p > 0)) c.fail(fmt::format("the order {}", p));
  return p;
}

Results lp_pool(Call& c) {
  const Geometry g = pool_geometry(c);
  return results(p_norm(windows(c.tensor(0), g, 0), last_axes(g.axes()), order_of(c), false));
}

Results global_average_pool(Call& c) { return results(c.tensor(0).mean(spatial_axes(c.tensor(0)), {.keepdim = true, .dtype = {}})); }
Results global_max_pool(Call& c) { return results(c.tensor(0).max(spatial_axes(c.tensor(0)), {.keepdim = true, .dtype = {}})); }
Results global_lp_pool(Call& c) { return results(p_norm(c.tensor(0), spatial_axes(c.tensor(0)), order_of(c), true)); }

/// Values at their places in a tensor of zeros.
Results max_unpool(Call& c) {
  const Tensor& x = c.tensor(0);
  Sizes shape = x.shape();
  if (shape.size() < 3 || c.shape(1) != shape)
    c.fail(fmt::format("indices ({}) for ({})", fmt::join(c.shape(1), ", "), fmt::join(shape, ", ")));
  const Geometry g = geometry_of(c, Sizes(shape.begin() + 2, shape.end()), {});
  for (size_t i = 0; i < g.axes(); ++i) shape[i + 2] = (shape[i + 2] - 1) * g.strides[i] - g.begin[i] - g.end[i] + g.kernel[i];
  const Tensor zeros = Tensor::zeros({element_count(shape)}, {.dtype = x.dtype()});
  const Tensor y = zeros.scatter(0, c.tensor(1).cast(DType::int64).flatten(), x.flatten()).reshape(shape);
  return results(c.has(2) ? y.pad_to(c.integers(2)) : y);
}

/// The greatest element of each bin of a region, whose corners are rounded to elements.
Results max_roi_pool(Call& c) {
  const Tensor &x = c.tensor(0), &regions = c.tensor(1);
  const Sizes pooled = c.required_integers("pooled_shape");
  if (x.ndim() != 4 || pooled.size() != 2 || std::min(pooled[0], pooled[1]) < 1) c.fail("expects two spatial axes");
  if (regions.ndim() != 2 || regions.size(1) != 5) c.fail(fmt::format("regions {}", regions.to_string()));
  const double scale = c.attribute("spatial_scale", 1.0);
  const int64_t count = regions.size(0);
  const auto column = [&](int64_t i) { return regions.shrink({{0, count}, {i, i + 1}}); };
  const auto bins = [&](int64_t first, int axis, int64_t number) {
    // Whether an element of the axis lies in a bin: (regions, bins, elements).
    const auto rounded = [&](int64_t i) { return (column(i) * scale + 0.5).floor(); };
    const Tensor begin = rounded(first), size = (rounded(first + 2) - begin + 1).maximum(1) / double(number);
    const Tensor bin = Tensor::arange(number, {.dtype = DType::float32}).reshape({1, -1});
    const Tensor from = (bin * size).floor() + begin, to = ((bin + 1) * size).ceil() + begin;
    const Tensor at = Tensor::arange(x.size(axis), {.dtype = DType::float32}).reshape({1, 1, -1});
    return (at >= from.unsqueeze(-1)) & (at < to.unsqueeze(-1));
  };
  const Tensor images = x[column(0).flatten().cast(DType::int64)];  // (regions, channels, height, width)
  const double least = -std::numeric_limits<double>::infinity();
  const Tensor in_columns = bins(1, 3, pooled[1]).unsqueeze(1).unsqueeze(3);  // (regions, 1, bins, 1, width)
  const Tensor by_column = in_columns.where(images.unsqueeze(2), least).max(-1);
  const Tensor in_rows = bins(2, 2, pooled[0]).unsqueeze(1).unsqueeze(3);  // (regions, 1, bins, 1, height)
  const Tensor y = in_rows.where(by_column.unsqueeze(2), least).max(-1);
  return results((y == least).where(0, y));
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "AveragePool", 1, average_pool},
    {onnx_domain, "GlobalAveragePool", 1, global_average_pool},
    {onnx_domain, "GlobalLpPool", 1, global_lp_pool},
    {onnx_domain, "GlobalMaxPool", 1, global_max_pool},
    {onnx_domain, "LpPool", 1, lp_pool},
    {onnx_domain, "MaxPool", 1, max_pool},
    {onnx_domain, "MaxRoiPool", 1, max_roi_pool},
    {onnx_domain, "MaxUnpool", 9, max_unpool},
};

}  // namespace

std::span<const OperatorRow> pooling_operators() { return rows; }

}  // namespace tinygrad::onnx
