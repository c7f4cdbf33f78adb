// Images in other sizes and at other places.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "frontend/aten/convolution.h"

namespace tinygrad::aten {

namespace {

/// What each output along an axis is made of: places of the input and their weights.
struct Taps {
  int64_t input = 0;
  std::vector<std::vector<int64_t>> places;  ///< a list for each tap
  std::vector<std::vector<double>> weights;
  size_t outputs() const { return places[0].size(); }
};
enum class Filter : uint8_t { nearest, nearest_exact, linear, cubic };

/// The step in the input for one of the output.
double scale_of(int64_t input, int64_t output, bool align_corners, std::optional<double> factor) {
  if (align_corners) return output > 1 ? double(input - 1) / double(output - 1) : 0;
  return factor && *factor > 0 ? 1 / *factor : double(input) / double(output);
}
double cubic_weight(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}
/// Places are computed as PyTorch does, in float32 but for float64, as rounding decides which element is the nearest.
template <class Float>
Taps taps_of(Filter filter, int64_t input, int64_t output, bool align_corners, std::optional<double> factor) {
  constexpr Float half = 0.5;
  const auto scale = Float(scale_of(input, output, align_corners, factor));
  const size_t count = filter == Filter::cubic ? 4 : filter == Filter::linear ? 2 : 1;
  Taps t{.input = input, .places = std::vector(count, std::vector<int64_t>()), .weights = std::vector(count, std::vector<double>())};
  const auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at, 0, input - 1); };
  for (int64_t o = 0; o < output; ++o) {
    if (filter == Filter::nearest || filter == Filter::nearest_exact) {
      const Float at = filter == Filter::nearest ? Float(o) * scale : (Float(o) + half) * scale;
      t.places[0].push_back(clamped(int64_t(std::floor(at))));
      t.weights[0].push_back(1);
      continue;
    }
    Float at = align_corners ? Float(o) * scale : (Float(o) + half) * scale - half;
    if (filter == Filter::linear && at < 0) at = 0;
    const auto low = int64_t(std::floor(at));
    const double rest = double(at) - double(low);
    for (size_t k = 0; k < count; ++k) {
      const int64_t offset = int64_t(k) - (filter == Filter::cubic ? 1 : 0);
      t.places[k].push_back(clamped(low + offset));
      t.weights[k].push_back(filter == Filter::cubic ? cubic_weight(rest - double(offset)) : k == 0 ? 1 - rest : rest);
    }
  }
  return t;
}

Tensor resampled(const Tensor& x, int axis, const Taps& taps) {
  Sizes shape(size_t(x.ndim()), 1);
  shape[size_t(axis)] = int64_t(taps.outputs());
  Tensor out;
  for (size_t k = 0; k < taps.places.size(); ++k) {
    std::vector<Index> index(size_t(x.ndim()), Index(Slice{}));
    index[size_t(axis)] = Tensor(taps.places[k], {.device = x.device()});
    Tensor part = x.get_item(index);
    if (taps.places.size() > 1) part = part * Tensor(taps.weights[k], shape, {.dtype = x.dtype(), .device = x.device()});
    out = out.defined() ? out + part : part;
  }
  return out;
}
/// The gradient: a product with the matrix of the weights.
Tensor spread_back(const Tensor& grad, int axis, const Taps& taps) {
  const auto outputs = taps.outputs(), inputs = size_t(taps.input);
  std::vector<double> matrix(outputs * inputs);
  for (size_t k = 0; k < taps.places.size(); ++k)
    for (size_t o = 0; o < outputs; ++o) matrix[o * inputs + size_t(taps.places[k][o])] += taps.weights[k][o];
  const Tensor weights(matrix, Sizes{int64_t(outputs), taps.input}, {.dtype = grad.dtype(), .device = grad.device()});
  return grad.transpose(axis, -1).matmul(weights).transpose(axis, -1);
}

constexpr std::array scale_names{std::array<std::string_view, 3>{"scales", "", ""},
                                 std::array<std::string_view, 3>{"scales_h", "scales_w", ""},
                                 std::array<std::string_view, 3>{"scales_d", "scales_h", "scales_w"}};
std::vector<Taps> all_taps(const Call& c, const Sizes& input, DType dtype, Filter filter) {
  const size_t axes = input.size();
  const bool align_corners = c.declares("align_corners") && c.flag("align_corners");
  std::vector<std::optional<double>> factors(axes);
  if (c.declares("scale_factors")) {
    const std::vector<double> given = c.numbers("scale_factors");
    if (!given.empty() && given.size() != axes) c.fail(fmt::format("{} scale factors for {} axes", given.size(), axes));
    for (size_t i = 0; i < given.size(); ++i) factors[i] = given[i];
  } else {
    for (size_t i = 0; i < axes; ++i) {
      const std::string_view name = scale_names[axes - 1][i];
      if (c.declares(name) && c.has(name)) factors[i] = c.number(name);
    }
  }
  Sizes output = c.has("output_size") ? c.integers("output_size", axes) : Sizes();
  std::vector<Taps> out;
  for (size_t i = 0; i < axes; ++i) {
    if (output.size() <= i) {
      if (!factors[i]) c.fail("neither output_size nor scale factors are given");
      output.push_back(int64_t(std::floor(float(double(input[i]) * *factors[i]))));
    }
    if (c.count_of(output[i]) < 1 || input[i] < 1) c.fail("a size of 0");
    // PyTorch does not look at a factor where it copies elements.
    const bool is_plain = filter == Filter::nearest && axes == 2;
    if (((filter == Filter::linear || is_plain) && output[i] == input[i]) || (is_plain && output[i] == 2 * input[i])) factors[i].reset();
    out.push_back(dtype == DType::float64 ? taps_of<double>(filter, input[i], output[i], align_corners, factors[i])
                                          : taps_of<float>(filter, input[i], output[i], align_corners, factors[i]));
  }
  return out;
}
Results upsample(const Call& c, size_t axes, Filter filter) {
  const Tensor x = c.tensor(c.declares("input") ? "input" : "self");
  if (x.ndim() != int(axes) + 2) c.fail(fmt::format("a tensor of {} axes", x.ndim()));
  const Sizes shape = x.shape();
  const std::vector<Taps> taps = all_taps(c, Sizes(shape.begin() + 2, shape.end()), x.dtype(), filter);
  const bool moves = filter == Filter::nearest || filter == Filter::nearest_exact;
  if (!moves && !is_float(x.dtype())) c.fail("only for floats");
  Tensor out = moves ? x : x.cast(wide_type(x.dtype()));
  for (size_t i = axes; i-- > 0;) out = resampled(out, int(i) + 2, taps[i]);
  return one(out.cast(x.dtype()));
}
Results upsample_backward(const Call& c, size_t axes, Filter filter) {
  const Tensor grad = c.tensor("grad_output");
  const Sizes shape = c.integers("input_size");
  if (shape.size() != axes + 2 || grad.ndim() != int(axes) + 2) c.fail("input_size has another number of axes");
  const std::vector<Taps> taps = all_taps(c, Sizes(shape.begin() + 2, shape.end()), grad.dtype(), filter);
  Tensor out = grad.cast(wide_type(grad.dtype()));
  for (size_t i = 0; i < axes; ++i) out = spread_back(out, int(i) + 2, taps[i]);
  return one(out.cast(grad.dtype()));
}

/// Where a coordinate of -1 to 1 lies among `size` elements, brought inside by the padding mode.
Tensor place_on_grid(const Tensor& at, int64_t size, int64_t padding_mode, bool align_corners) {
  constexpr int64_t border = 1, reflection = 2;
  Tensor place = align_corners ? (at + 1) * (double(size - 1) / 2) : ((at + 1) * double(size) - 1) / 2;
  if (padding_mode == reflection) {
    const double low = align_corners ? 0 : -0.5, span = align_corners ? double(size - 1) : double(size);
    if (span <= 0) return place.zeros_like();
    const Tensor away = (place - low).abs(), turns = (away / span).floor(), rest = away - turns * span;
    place = (turns - (turns / 2).floor() * 2).eq(0).where(rest + low, span - rest + low);
  }
  if (padding_mode == border || padding_mode == reflection) place = place.isnan().where(place.zeros_like(), place);
  if (padding_mode == border || padding_mode == reflection)
    place = place.maximum(place.zeros_like()).minimum(place.full_like(double(size - 1)));
  return place;
}
/// The elements at whole places, 0 outside.
Tensor taken(const Tensor& x, const Tensor& row, const Tensor& column) {
  const int64_t batch = x.size(0), channels = x.size(1), height = x.size(2), width = x.size(3);
  const Tensor inside = (row >= 0) & (row <= double(height - 1)) & (column >= 0) & (column <= double(width - 1));
  const auto bounded = [](const Tensor& t, int64_t size) {
    return t.isnan().where(t.zeros_like(), t).maximum(t.zeros_like()).minimum(t.full_like(double(size - 1))).cast(DType::int64);
  };
  const Tensor flat = (bounded(row, height) * width + bounded(column, width)).reshape({batch, 1, -1});
  const Tensor found = x.reshape({batch, channels, height * width}).gather(2, flat.expand({batch, channels, flat.size(2)}));
  const Tensor values = found.reshape({batch, channels, row.size(1), row.size(2)});
  return inside.unsqueeze(1).where(values, values.zeros_like());
}
Tensor grid_samples(const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
  constexpr int64_t bilinear = 0, nearest = 1;
  const Tensor column_at = grid[{Ellipsis{}, 0}], row_at = grid[{Ellipsis{}, 1}];
  if (mode == nearest)
    return taken(x, place_on_grid(row_at, x.size(2), padding, align_corners).round(),
                 place_on_grid(column_at, x.size(3), padding, align_corners).round());
  if (mode == bilinear) {
    const Tensor row = place_on_grid(row_at, x.size(2), padding, align_corners),
                 column = place_on_grid(column_at, x.size(3), padding, align_corners);
    const Tensor top = row.floor(), left = column.floor(), down = (row - top).unsqueeze(1), right = (column - left).unsqueeze(1);
    return taken(x, top, left) * (1 - down) * (1 - right) + taken(x, top, left + 1) * (1 - down) * right +
           taken(x, top + 1, left) * down * (1 - right) + taken(x, top + 1, left + 1) * down * right;
  }
  // Bicubic: the places of the taps, not the point, are brought inside.
  const auto unbounded = [&](const Tensor& at, int64_t size) { return place_on_grid(at, size, 0, align_corners); };
  const auto tap = [&](const Tensor& place, int64_t size) {
    const double n = double(size);
    const Tensor at = align_corners ? place * (n > 1 ? 2 / (n - 1) : 0.0) - 1 : (place * 2 + 1) / n - 1;
    return padding == 0 ? place : place_on_grid(at, size, padding, align_corners).round();
  };
  const auto weight = [](const Tensor& rest, int k) {
    constexpr double a = -0.75;
    const Tensor d = (rest - double(k)).abs();
    return (d <= 1).where(((a + 2) * d - (a + 3)) * d * d + 1, ((d - 5) * d + 8) * d * a - 4 * a).unsqueeze(1);
  };
  const Tensor row = unbounded(row_at, x.size(2)), column = unbounded(column_at, x.size(3)), top = row.floor(), left = column.floor();
  Tensor out;
  for (int i = -1; i <= 2; ++i)
    for (int j = -1; j <= 2; ++j) {
      const Tensor part = taken(x, tap(top + i, x.size(2)), tap(left + j, x.size(3))) * weight(row - top, i) * weight(column - left, j);
      out = out.defined() ? out + part : part;
    }
  return out;
}
Results grid_sampler(const Call& c) {
  const Tensor x = c.tensor("input"), grid = c.tensor("grid");
  if (x.ndim() != 4 || grid.ndim() != 4 || grid.size(3) != 2 || x.size(0) != grid.size(0)) c.fail("not an image and its grid");
  const int64_t mode = c.integer("interpolation_mode"), padding = c.integer("padding_mode");
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2) c.fail("a mode that there is not");
  const DType wide = wide_type(x.dtype());
  return one(grid_samples(x.cast(wide), grid.cast(wide), mode, padding, c.flag("align_corners")).cast(x.dtype()));
}
Results grid_sampler_backward(const Call& c) {
  const Tensor x = c.tensor("input"), grid = c.tensor("grid");
  const DType wide = wide_type(x.dtype());
  const auto f = [&](std::span<const Tensor> at) {
    return grid_samples(at[0], at[1], c.integer("interpolation_mode"), c.integer("padding_mode"), c.flag("align_corners"));
  };
  const std::vector<Tensor> found = gradients(c, f, {x.cast(wide), grid.cast(wide)}, c.tensor("grad_output"));
  const List& mask = c["output_mask"].list();
  if (mask.size() != 2) c.fail("output_mask does not have 2 bools");
  return {mask[0].boolean() ? Value(found[0].cast(x.dtype())) : Value(), mask[1].boolean() ? Value(found[1].cast(grid.dtype())) : Value()};
}

/// Windows of an image as columns.
struct Blocks {
  Sizes kernel, dilation, padding, stride, counts;
};
Blocks blocks_of(const Call& c, int64_t height, int64_t width) {
  Blocks b{.kernel = c.integers("kernel_size", 2),
           .dilation = c.integers("dilation", 2),
           .padding = c.integers("padding", 2),
           .stride = c.integers("stride", 2),
           .counts = {}};
  const Sizes sizes{height, width};
  for (size_t i = 0; i < 2; ++i) {
    if (b.kernel[i] < 1 || b.dilation[i] < 1 || b.stride[i] < 1 || b.padding[i] < 0) c.fail("a window that there is not");
    const int64_t room = sizes[i] + 2 * b.padding[i] - b.dilation[i] * (b.kernel[i] - 1) - 1;
    if (room < 0) c.fail("no window fits");
    b.counts.push_back(room / b.stride[i] + 1);
  }
  return b;
}
Results im2col(const Call& c) {
  const Tensor given = c.tensor("self"), x = given.ndim() == 3 ? given.unsqueeze(0) : given;
  const Blocks b = blocks_of(c, x.size(2), x.size(3));
  const Tensor wide = x.pad({{0, 0}, {0, 0}, {b.padding[0], b.padding[0]}, {b.padding[1], b.padding[1]}});
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < b.kernel[0]; ++i)
    for (int64_t j = 0; j < b.kernel[1]; ++j) {
      const int64_t y = i * b.dilation[0], z = j * b.dilation[1];
      parts.push_back(wide[{Slice{}, Slice{}, Slice{.start = y, .stop = y + (b.counts[0] - 1) * b.stride[0] + 1, .step = b.stride[0]},
                            Slice{.start = z, .stop = z + (b.counts[1] - 1) * b.stride[1] + 1, .step = b.stride[1]}}]);
    }
  const Tensor out = Tensor::stack(parts, 2).reshape({x.size(0), x.size(1) * int64_t(parts.size()), b.counts[0] * b.counts[1]});
  return one(given.ndim() == 3 ? out.squeeze(0) : out);
}
/// The sums of columns at the places of an image that they are windows of.
Results col2im(const Call& c) {
  const Tensor given = c.tensor("self"), x = given.ndim() == 2 ? given.unsqueeze(0) : given;
  const Sizes size = c.integers("output_size", 2);
  const Blocks b = blocks_of(c, size[0], size[1]);
  const int64_t places = b.kernel[0] * b.kernel[1];
  if (x.ndim() != 3 || x.size(1) % places != 0 || x.size(2) != b.counts[0] * b.counts[1]) c.fail("the columns do not fit the windows");
  const int64_t channels = x.size(1) / places;
  const Tensor columns = x.reshape({x.size(0), channels, places, b.counts[0], b.counts[1]});
  Tensor out;
  for (int64_t k = 0; k < places; ++k) {
    Tensor part = columns[{Slice{}, Slice{}, k}];
    const int64_t offsets[] = {k / b.kernel[1] * b.dilation[0], k % b.kernel[1] * b.dilation[1]};
    for (size_t i = 0; i < 2; ++i) {
      const size_t axis = 2 + i;
      Sizes shape = part.shape(), between = shape;
      between.insert(between.begin() + ptrdiff_t(axis) + 1, 1);
      ExtentPairs gaps(between.size(), {0, 0});
      gaps[axis + 1] = {0, b.stride[i] - 1};
      shape[axis] *= b.stride[i];
      part = part.reshape(between).pad(gaps).reshape(shape);
      const int64_t before = offsets[i] - b.padding[i];
      ExtentPairs around(shape.size(), {0, 0});
      around[axis] = {before, size[i] - shape[axis] - before};
      part = part.pad(around);
    }
    out = out.defined() ? out + part : part;
  }
  return one(given.ndim() == 2 ? out.squeeze(0) : out);
}

}  // namespace

std::vector<Row> resampling_operators() {
  std::vector<Row> rows = {
      {"aten.grid_sampler_2d.default(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)",
       grid_sampler},
      {"aten.grid_sampler.default(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)", grid_sampler},
      {"aten.grid_sampler_2d_backward.default(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
       "bool "
       "align_corners, bool[2] output_mask)",
       grid_sampler_backward},
      {"aten.im2col.default(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride)", im2col},
      {"aten.col2im.default(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride)",
       col2im},
  };
  const auto add = [&](std::string_view schema, size_t axes, Filter filter) {
    const bool backward = schema.find("backward") != std::string_view::npos;
    rows.push_back({schema, [=](const Call& c) { return backward ? upsample_backward(c, axes, filter) : upsample(c, axes, filter); }});
  };
  using enum Filter;
  add("aten.upsample_nearest1d.default(Tensor self, SymInt[1] output_size, float? scales=None)", 1, nearest);
  add("aten.upsample_nearest2d.default(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None)", 2, nearest);
  add("aten.upsample_nearest3d.default(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? "
      "scales_w=None)",
      3, nearest);
  add("aten._upsample_nearest_exact1d.default(Tensor self, SymInt[1] output_size, float? scales=None)", 1, nearest_exact);
  add("aten._upsample_nearest_exact2d.default(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None)", 2,
      nearest_exact);
  add("aten.upsample_linear1d.default(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None)", 1, linear);
  add("aten.upsample_bilinear2d.default(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
      "scales_w=None)",
      2, linear);
  add("aten.upsample_trilinear3d.default(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? "
      "scales_h=None, float? scales_w=None)",
      3, linear);
  add("aten.upsample_bicubic2d.default(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None)",
      2, cubic);
  add("aten.upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors)", 1, nearest);
  add("aten.upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors)", 2, nearest);
  add("aten.upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors)", 3, nearest);
  add("aten._upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors)", 2, nearest_exact);
  add("aten._upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors)", 1, nearest_exact);
  add("aten._upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors)", 3, nearest_exact);
  add("aten.upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors)", 1, linear);
  add("aten.upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors)", 2, linear);
  add("aten.upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors)", 3, linear);
  add("aten.upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors)", 2, cubic);
  add("aten.upsample_nearest1d_backward.default(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None)", 1,
      nearest);
  add("aten.upsample_nearest2d_backward.default(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, "
      "float? "
      "scales_w=None)",
      2, nearest);
  add("aten.upsample_linear1d_backward.default(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, float? "
      "scales=None)",
      1, linear);
  add("aten.upsample_bilinear2d_backward.default(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, "
      "float? "
      "scales_h=None, float? scales_w=None)",
      2, linear);
  add("aten.upsample_bicubic2d_backward.default(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, "
      "float? "
      "scales_h=None, float? scales_w=None)",
      2, cubic);
  return rows;
}

}  // namespace tinygrad::aten
