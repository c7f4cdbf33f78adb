// Operators of images: resizing, sampling at grids, regions and boxes.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

std::vector<Index> at_axis(int axis, Index index) {
  std::vector<Index> indices(size_t(axis), Index(Slice{}));
  indices.push_back(std::move(index));
  return indices;
}

/// How the elements along an axis are made of those before: for each output as many places and weights.
struct Taps {
  size_t count = 0;  ///< for each output
  std::vector<int64_t> places;
  std::vector<double> weights;
  std::vector<bool> is_outside;  ///< outputs that get the value for what lies outside
};

struct ResizeMode {
  std::string mode, transformation, nearest;
  double cubic = -0.75;
  bool excludes_outside = false, antialiases = false;
};

/// Where in the input the middle of an output lies.
double source_of(const Call& c, const ResizeMode& m, double at, double scale, double in, double out_size, int64_t out, double begin,
                 double end) {
  const std::string& t = m.transformation;
  if (t == "half_pixel") return (at + 0.5) / scale - 0.5;
  if (t == "asymmetric") return at / scale;
  if (t == "align_corners") return out_size == 1 ? 0 : at * (in - 1) / (out_size - 1);
  if (t == "pytorch_half_pixel") return out_size == 1 ? -0.5 : (at + 0.5) / scale - 0.5;
  if (t == "half_pixel_symmetric") return in / 2 * (1 - double(out) / out_size) + (at + 0.5) / scale - 0.5;
  if (t == "tf_half_pixel_for_nn") return (at + 0.5) / scale;
  if (t == "tf_crop_and_resize")
    return begin * (in - 1) + (out_size == 1 ? (end - begin) * (in - 1) / 2 : at * (end - begin) * (in - 1) / (out_size - 1));
  c.fail(fmt::format("the transformation '{}'", t));
}

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

/// The weights of the neighbours base + first, base + first + 1, ... of base + ratio, for a ratio in (0, 1].
struct Weights {
  int64_t first;
  std::vector<double> values;
};
Weights weights_of(const Call& c, const ResizeMode& m, double ratio, double scale) {
  if (m.mode == "nearest") {
    const std::string& n = m.nearest;
    const bool takes_next = ratio == 1 || (n == "round_prefer_floor" ? ratio > 0.5 : n == "round_prefer_ceil" ? ratio >= 0.5 : n == "ceil");
    return {takes_next ? 1 : 0, {1}};
  }
  const double shrink = m.antialiases ? std::min(scale, 1.0) : 1;
  const bool is_cubic = m.mode == "cubic";
  if (!is_cubic && m.mode != "linear") c.fail(fmt::format("the mode '{}'", m.mode));
  constexpr double most_neighbours = 1 << 16;
  if (shrink * most_neighbours < 1) c.fail(fmt::format("a scale of {}", scale));
  const int64_t first = int64_t(std::floor((is_cubic ? -2 : -1) / shrink)) + 1;
  Weights w{first, {}};
  for (int64_t i = first; i < 2 - first; ++i) {
    const double x = shrink * (double(i) - ratio);
    w.values.push_back(is_cubic ? cubic_weight(x, m.cubic) : std::max(0.0, 1 - std::fabs(x)));
  }
  if (m.antialiases) {
    const double sum = std::accumulate(w.values.begin(), w.values.end(), 0.0);
    for (double& x : w.values) x /= sum;
  }
  return w;
}

Taps taps_of(const Call& c, const ResizeMode& m, int64_t in, int64_t out, double scale, double begin, double end) {
  Taps t;
  if (in == 0 && out > 0) c.fail("an axis without elements is made longer");
  for (int64_t o = 0; o < out; ++o) {
    const double x = source_of(c, m, double(o), scale, double(in), scale * double(in), out, begin, end);
    if (!(std::fabs(x) < 0x1p52)) c.fail(fmt::format("the coordinate {}", x));
    t.is_outside.push_back(m.transformation == "tf_crop_and_resize" && (x < 0 || x > double(in - 1)));
    const double base = std::floor(x) == x ? x - 1 : std::floor(x);
    Weights w = weights_of(c, m, x - base, scale);
    t.count = w.values.size();
    host_count(c, {out, int64_t(t.count)});
    if (m.excludes_outside) {
      double sum = 0;
      for (size_t i = 0; i < t.count; ++i) {
        const int64_t at = int64_t(base) + w.first + int64_t(i);
        if (at < 0 || at >= in) w.values[i] = 0;
        sum += w.values[i];
      }
      for (double& v : w.values) v /= sum;
    }
    for (size_t i = 0; i < t.count; ++i) {
      t.places.push_back(std::clamp<int64_t>(int64_t(base) + w.first + int64_t(i), 0, in - 1));
      t.weights.push_back(w.values[i]);
    }
  }
  return t;
}

/// Elements taken from one place each; where each is repeated equally often, as a view.
Tensor taken(const Tensor& x, int axis, const std::vector<int64_t>& places) {
  const int64_t in = x.size(axis), out = int64_t(places.size());
  if (in > 0 && out % in == 0) {
    const int64_t factor = out / in;
    bool repeats = true;
    for (int64_t o = 0; o < out; ++o) repeats &= places[size_t(o)] == o / factor;
    if (repeats) return factor == 1 ? x : x.repeat_interleave(factor, axis);
  }
  return x.get_item(at_axis(axis, Index(Tensor(places))));
}

Tensor resized(const Tensor& x, int axis, const Taps& t) {
  if (t.count == 1) return taken(x, axis, t.places);
  const size_t outputs = t.places.size() / std::max<size_t>(t.count, 1);
  Tensor sum;
  for (size_t k = 0; k < t.count; ++k) {
    std::vector<int64_t> places;
    std::vector<float> weights;
    for (size_t o = 0; o < outputs; ++o) {
      places.push_back(t.places[o * t.count + k]);
      weights.push_back(float(t.weights[o * t.count + k]));
    }
    if (std::all_of(weights.begin(), weights.end(), [](float w) { return w == 0; }) && (sum.defined() || k + 1 < t.count)) continue;
    Sizes along(size_t(x.ndim()), 1);
    along[size_t(axis)] = int64_t(outputs);
    const Tensor part = taken(x, axis, places) * Tensor(weights, along).cast(x.dtype());
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

Tensor resize_to(const Call& c, Tensor x, const ResizeMode& m, const std::vector<int>& axes, const Sizes& sizes,
                 const std::vector<double>& scales, const std::vector<double>& roi) {
  for (size_t i = 0; i < axes.size(); ++i) {
    host_count(c, {sizes[i]});
    if (!(scales[i] > 0) && x.size(axes[i]) > 0 && sizes[i] > 0) c.fail(fmt::format("a scale of {}", scales[i]));
  }
  if (!roi.empty() && roi.size() != 2 * axes.size()) c.fail(fmt::format("a region of {} numbers for {} axes", roi.size(), axes.size()));
  const DType dtype = x.dtype();
  const bool is_computed = m.mode != "nearest" && !x.is_floating_point();
  if (is_computed) x = x.cast(DType::float32);
  Tensor outside;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = axes[i];
    const int64_t in = x.size(axis);
    const double begin = roi.empty() ? 0 : roi.at(i), end = roi.empty() ? 1 : roi.at(i + axes.size());
    if (sizes[i] == in && scales[i] == 1 && begin == 0 && end == 1) continue;
    const Taps t = taps_of(c, m, in, sizes[i], scales[i], begin, end);
    x = resized(x, axis, t);
    if (std::find(t.is_outside.begin(), t.is_outside.end(), true) == t.is_outside.end()) continue;
    Sizes along(size_t(x.ndim()), 1);
    along[size_t(axis)] = sizes[i];
    std::vector<int64_t> marks(t.is_outside.begin(), t.is_outside.end());
    const Tensor here = Tensor(marks, along) != 0;
    outside = outside.defined() ? outside | here : here;
  }
  if (outside.defined()) x = outside.where(typed_scalar(c.attribute("extrapolation_value", 0.0), x.dtype()), x);
  if (!is_computed) return x;
  const auto [least, most] = integer_range(element_type_of(dtype));
  return x.trunc().clamp(double(least), double(most)).cast(dtype);
}

int64_t scaled_size(const Call& c, double in, double scale, double more) {
  const double size = std::floor(in * scale + more);
  if (!(size >= 0 && size < 0x1p31)) c.fail(fmt::format("{} elements at a scale of {}", in, scale));
  return int64_t(size);
}

Results resize(Call& c) {
  const Sizes in = c.shape(0);
  const bool is_first = c.version() < 11;
  ResizeMode m{.mode = c.choice("mode", {"nearest", "linear", "cubic"}),
               .transformation = is_first ? "asymmetric" : c.attribute("coordinate_transformation_mode", "half_pixel"),
               .nearest = is_first ? "floor" : c.choice("nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}),
               .cubic = c.attribute("cubic_coeff_a", -0.75),
               .excludes_outside = c.flag("exclude_outside"),
               .antialiases = c.flag("antialias")};
  std::vector<int64_t> named = c.attribute("axes", std::vector<int64_t>());
  if (named.empty()) named.resize(in.size()), std::iota(named.begin(), named.end(), 0);
  const std::vector<int> axes = normal_axes(c, named, in.size());
  const size_t scales_input = is_first ? 1 : 2;
  std::vector<double> scales = c.has(scales_input) ? c.numbers(scales_input) : std::vector<double>();
  Sizes sizes = c.has(3) && !is_first ? c.integers(3) : Sizes();
  const bool by_sizes = scales.empty();
  if ((by_sizes ? sizes.size() : scales.size()) != axes.size())
    c.fail(fmt::format("{} scales and {} sizes for {} axes", scales.size(), sizes.size(), axes.size()));
  if (by_sizes) {
    for (size_t i = 0; i < axes.size(); ++i) scales.push_back(double(sizes[i]) / double(in[size_t(axes[i])]));
    for (int64_t s : sizes) host_count(c, {s});
    const std::string policy = c.choice("keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"});
    if (policy != "stretch") {
      const double scale =
          policy == "not_larger" ? *std::min_element(scales.begin(), scales.end()) : *std::max_element(scales.begin(), scales.end());
      for (size_t i = 0; i < axes.size(); ++i) {
        scales[i] = scale;
        sizes[i] = scaled_size(c, double(in[size_t(axes[i])]), scale, 0.5);
      }
    }
  } else {
    sizes.clear();
    for (size_t i = 0; i < axes.size(); ++i) sizes.push_back(scaled_size(c, double(in[size_t(axes[i])]), scales[i], 0));
  }
  const std::vector<double> roi = m.transformation == "tf_crop_and_resize" && c.has(1) ? c.numbers(1) : std::vector<double>();
  return results_like(c.value(0), resize_to(c, c.tensor(0), m, axes, sizes, scales, roi));
}

Results upsample(Call& c) {
  const Sizes in = c.shape(0);
  std::vector<double> scales;
  if (c.version() >= 9)
    scales = c.numbers(1);
  else if (c.version() >= 7)
    scales = c.attribute("scales", scales);
  else
    scales = {1, 1, c.attribute("height_scale", 1.0), c.attribute("width_scale", 1.0)};
  if (scales.size() != in.size()) c.fail(fmt::format("{} scales for {} axes", scales.size(), in.size()));
  std::string mode = c.attribute("mode", "nearest");
  if (mode == "bilinear") mode = "linear";
  std::vector<int> axes(in.size());
  std::iota(axes.begin(), axes.end(), 0);
  Sizes sizes;
  for (size_t i = 0; i < in.size(); ++i) sizes.push_back(scaled_size(c, double(in[i]), scales[i], 0));
  return results(resize_to(c, c.tensor(0), {.mode = mode, .transformation = "asymmetric", .nearest = "floor"}, axes, sizes, scales, {}));
}

// Sampling at grids

/// Back and forth between two borders.
Tensor reflected(const Tensor& x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return x * 0 + low;
  const Tensor turned = (x - low).mod(2 * range);
  return (turned <= range).where(turned + low, 2 * range + low - turned);
}

struct Grid {
  std::string mode, padding;
  bool aligns_corners;
  Tensor image;            ///< (batch, channels, places)
  Sizes sizes;             ///< of the spatial axes
  std::vector<Tensor> at;  ///< coordinates, one a spatial axis, (batch, points)

  double low() const { return aligns_corners ? 0 : -0.5; }
  double high(size_t axis) const { return double(sizes[axis]) - (aligns_corners ? 1 : 0.5); }

  /// The elements at whole coordinates, by the rule for those outside.
  Tensor pixels(const std::vector<Tensor>& whole) const {
    Tensor place, is_inside;
    for (size_t i = 0; i < sizes.size(); ++i) {
      Tensor x = whole[i];
      const Tensor within = (x >= 0) & (x <= double(sizes[i] - 1));
      if (padding == "zeros")
        is_inside = is_inside.defined() ? is_inside & within : within;
      else if (padding == "reflection")
        x = within.where(x, reflected(x, low(), high(i)).trunc());
      x = x.clamp(0.0, double(sizes[i] - 1)).cast(DType::int64);
      place = place.defined() ? place * sizes[i] + x : x;
    }
    const Tensor values = image.gather(2, place.unsqueeze(1).expand({image.size(0), image.size(1), place.size(1)}));
    return is_inside.defined() ? is_inside.unsqueeze(1).where(values, 0) : values;
  }

  /// The sum over the neighbours along one axis after another.
  Tensor sample(const std::vector<Tensor>& base, const std::vector<std::vector<Tensor>>& weights, std::vector<Tensor> whole) const {
    const size_t axis = whole.size();
    if (axis == sizes.size()) return pixels(whole);
    const int first = weights[axis].size() == 4 ? -1 : 0;
    Tensor sum;
    whole.emplace_back();
    for (size_t k = 0; k < weights[axis].size(); ++k) {
      whole.back() = base[axis] + (first + int(k));
      const Tensor part = sample(base, weights, whole) * weights[axis][k].unsqueeze(1);
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  }
};

Results grid_sample(Call& c) {
  const Tensor &x = c.tensor(0), &grid = c.tensor(1);
  const Sizes in = x.shape(), out = grid.shape();
  const size_t n = in.size() - 2;
  if (in.size() < 3 || out.size() != in.size() || out[0] != in[0] || out.back() != int64_t(n))
    c.fail(fmt::format("a grid ({}) for ({})", fmt::join(out, ", "), fmt::join(in, ", ")));
  Grid g{.mode = c.choice("mode", {"linear", "bilinear", "nearest", "cubic", "bicubic"}),
         .padding = c.choice("padding_mode", {"zeros", "border", "reflection"}),
         .aligns_corners = c.flag("align_corners"),
         .image = x.flatten(2),
         .sizes = Sizes(in.begin() + 2, in.end()),
         .at = {}};
  std::vector<Tensor> base;
  std::vector<std::vector<Tensor>> weights;
  for (size_t i = 0; i < n; ++i) {
    const std::vector<Index> indices{Index(Ellipsis{}), Index(int64_t(n - 1 - i))};
    const Tensor normal = grid.get_item(indices).reshape({out[0], -1}).cast(least_upper_dtype(grid.dtype(), DType::float32));
    const double size = double(g.sizes[i]);
    Tensor at = g.aligns_corners ? (normal + 1) / 2 * (size - 1) : ((normal + 1) * size - 1) / 2;
    if (g.mode == "nearest") at = at.round();
    if (g.padding == "border") at = ((at < g.low()) | (at > g.high(i))).where(at.clamp(0.0, size - 1), at);
    if (g.padding == "reflection") at = ((at < g.low()) | (at > g.high(i))).where(reflected(at, g.low(), g.high(i)), at);
    if (g.mode == "nearest") {
      base.push_back(at.trunc());
      continue;
    }
    base.push_back(at.floor());
    const Tensor t = (at - base.back()).cast(x.dtype());
    if (g.mode == "cubic" || g.mode == "bicubic") {
      constexpr double a = -0.75;
      const auto outer = [&](const Tensor& u) { return ((u * a - 5 * a) * u + 8 * a) * u - 4 * a; };
      const auto inner = [&](const Tensor& u) { return (u * (a + 2) - (a + 3)) * u * u + 1; };
      weights.push_back({outer(t + 1), inner(t), inner(1 - t), outer(2 - t)});
    } else {
      weights.push_back({1 - t, t});
    }
  }
  const Tensor y = g.mode == "nearest" ? g.pixels(base) : g.sample(base, weights, {});
  Sizes shape{in[0], in[1]};
  shape.insert(shape.end(), out.begin() + 1, out.end() - 1);
  return results(y.cast(x.dtype()).reshape(shape));
}

/// The middles of elements, or with aligned corners the range of [-1, 1], turned and moved.
Results affine_grid(Call& c) {
  const Tensor& theta = c.tensor(0);
  const Sizes size = c.integers(1);
  const size_t n = size.size() - 2;
  if (size.size() < 4 || theta.shape() != Sizes{size[0], int64_t(n), int64_t(n) + 1})
    c.fail(fmt::format("{} for the size ({})", theta.to_string(), fmt::join(size, ", ")));
  const auto column = [&](int64_t i) {
    return theta.shrink({{0, theta.size(0)}, {0, theta.size(1)}, {i, i + 1}}).squeeze(2);
  };  // (batch, n)
  Sizes each(n + 2, 1);
  each[0] = theta.size(0);
  each.back() = int64_t(n);
  Tensor sum = column(int64_t(n)).reshape(each);
  for (size_t i = 0; i < n; ++i) {
    const int64_t count = host_count(c, {size[i + 2]});
    std::vector<double> values;
    for (int64_t k = 0; k < count; ++k)
      values.push_back(c.flag("align_corners") ? (count == 1 ? -1 : -1 + 2.0 * double(k) / double(count - 1))
                                               : (2.0 * double(k) + 1) / double(count) - 1);
    Sizes along(n + 2, 1);
    along[i + 1] = count;
    sum = sum + column(int64_t(n - 1 - i)).reshape(each) * Tensor(values, along).cast(theta.dtype());
  }
  return results(sum);
}

// Regions

/// How much each element of an axis counts for each bin of each region, and how many samples a bin has.
struct RegionWeights {
  std::vector<float> values;  ///< (regions, bins, elements)
};

struct RegionAxis {
  double start, bin_size;
  int64_t samples;
};
RegionAxis region_axis(double from, double to, int64_t bins, int64_t ratio, bool is_half_pixel) {
  double size = to - from;
  if (!is_half_pixel) size = std::max(size, 1.0);
  constexpr double most_samples = 4096;  // of a bin, whatever a box says
  const double adaptive = std::clamp(std::ceil(size / double(bins)), 0.0, most_samples);
  return {from, size / double(bins), ratio > 0 ? ratio : int64_t(adaptive)};
}
/// The two elements around a sample, and the share of the second; false outside.
bool neighbours(double at, int64_t size, int64_t& low, int64_t& high, double& share) {
  if (at < -1 || at > double(size)) return false;
  at = std::max(at, 0.0);
  low = int64_t(at);
  if (low >= size - 1) {
    low = high = size - 1;
    share = 0;
  } else {
    high = low + 1;
    share = at - double(low);
  }
  return true;
}

struct Regions {
  std::vector<double> boxes;  ///< x1, y1, x2, y2 of each
  int64_t count, height, width, out_height, out_width, ratio;
  double scale;
  bool is_half_pixel;

  /// How many samples there are at most. ValueError for regions whose results the host does not hold.
  int64_t check(const Call& c, int64_t channels) const {
    if (out_height < 1 || out_width < 1) c.fail(fmt::format("bins ({}, {})", out_height, out_width));
    host_count(c, {count, channels, out_height, out_width});
    host_count(c, {count, out_height, height});
    host_count(c, {count, out_width, width});
    for (double box : boxes)
      if (!std::isfinite(box * scale)) c.fail(fmt::format("a box at {}", box));
    int64_t samples = 0;
    for (int64_t r = 0; r < count; ++r) samples += axis(r, true).samples * out_height + axis(r, false).samples * out_width;
    return samples;
  }

  RegionAxis axis(int64_t region, bool is_vertical) const {
    const double offset = is_half_pixel ? 0.5 : 0;
    const size_t at = size_t(region) * 4 + (is_vertical ? 1 : 0);
    return region_axis(boxes[at] * scale - offset, boxes[at + 2] * scale - offset, is_vertical ? out_height : out_width, ratio,
                       is_half_pixel);
  }
  /// The average of samples, as a matrix for each region.
  Tensor averages(bool is_vertical) const {
    const int64_t bins = is_vertical ? out_height : out_width, size = is_vertical ? height : width;
    std::vector<float> values(size_t(count * bins * size), 0.0F);
    for (int64_t r = 0; r < count; ++r) {
      const RegionAxis a = axis(r, is_vertical);
      for (int64_t b = 0; b < bins; ++b) {
        float* row = values.data() + (r * bins + b) * size;
        for (int64_t s = 0; s < a.samples; ++s) {
          const double at = a.start + double(b) * a.bin_size + (double(s) + 0.5) * a.bin_size / double(a.samples);
          int64_t low = 0, high = 0;
          double share = 0;
          if (!neighbours(at, size, low, high, share)) continue;
          row[low] += float((1 - share) / double(a.samples));
          row[high] += float(share / double(a.samples));
        }
      }
    }
    return Tensor(values, {count, bins, size});
  }
  /// The greatest product of an element near a sample and its share.
  void greatest(std::span<const double> plane, int64_t region, std::vector<float>& out) const {
    const RegionAxis v = axis(region, true), h = axis(region, false);
    for (int64_t i = 0; i < out_height; ++i) {
      for (int64_t j = 0; j < out_width; ++j) {
        double best = 0;
        bool is_first = true;
        for (int64_t s = 0; s < v.samples * h.samples; ++s) {
          const int64_t row_sample = s / h.samples, column_sample = s % h.samples;
          const double y = v.start + double(i) * v.bin_size + (double(row_sample) + 0.5) * v.bin_size / double(v.samples);
          const double x = h.start + double(j) * h.bin_size + (double(column_sample) + 0.5) * h.bin_size / double(h.samples);
          int64_t y0 = 0, y1 = 0, x0 = 0, x1 = 0;
          double ys = 0, xs = 0, value = 0;
          if (neighbours(y, height, y0, y1, ys) && neighbours(x, width, x0, x1, xs)) {
            const auto at = [&](int64_t row, int64_t column) { return plane[size_t(row * width + column)]; };
            value =
                std::max({(1 - ys) * (1 - xs) * at(y0, x0), (1 - ys) * xs * at(y0, x1), ys * (1 - xs) * at(y1, x0), ys * xs * at(y1, x1)});
          }
          best = is_first ? value : std::max(best, value);
          is_first = false;
        }
        out.push_back(float(best));
      }
    }
  }
};

Results roi_align(Call& c) {
  const Tensor& x = c.tensor(0);
  if (x.ndim() != 4) c.fail("expects two spatial axes");
  const Regions regions{.boxes = c.numbers(1),
                        .count = c.shape(2).at(0),
                        .height = x.size(2),
                        .width = x.size(3),
                        .out_height = c.attribute("output_height", 1),
                        .out_width = c.attribute("output_width", 1),
                        .ratio = c.attribute_within("sampling_ratio", 0, 0, 4096),
                        .scale = c.attribute("spatial_scale", 1.0),
                        .is_half_pixel = c.version() >= 16 &&
                                         c.choice("coordinate_transformation_mode", {"half_pixel", "output_half_pixel"}) == "half_pixel"};
  if (c.shape(1) != Sizes{regions.count, 4} || c.shape(2) != Sizes{regions.count})
    c.fail(fmt::format("boxes ({}) of images ({})", fmt::join(c.shape(1), ", "), fmt::join(c.shape(2), ", ")));
  const int64_t samples = regions.check(c, x.size(1));
  if (c.choice("mode", {"avg", "max"}) != "max") {
    c.take_steps(samples / 1024);
    const Tensor images = x[c.tensor(2).cast(DType::int64)];
    const Tensor rows = regions.averages(true).cast(x.dtype()).unsqueeze(1), columns = regions.averages(false).cast(x.dtype()).unsqueeze(1);
    return results(rows.matmul(images).matmul(columns.transpose(-2, -1)));
  }
  const std::vector<double> all = c.numbers(0);
  const std::vector<int64_t> of_batch = c.integers(2);
  const int64_t channels = x.size(1), plane = regions.height * regions.width;
  std::vector<float> out;
  for (int64_t r = 0; r < regions.count; ++r) {
    const int64_t image = of_batch[size_t(r)];
    if (image < 0 || image >= x.size(0)) throw IndexError(fmt::format("the image {} of {}", image, x.size(0)));
    const int64_t of_bin = regions.axis(r, true).samples * regions.axis(r, false).samples;
    for (int64_t k = 0; k < channels; ++k) {
      c.take_steps(of_bin * regions.out_height * regions.out_width / 128 + 1);
      regions.greatest(std::span(all).subspan(size_t((image * channels + k) * plane), size_t(plane)), r, out);
    }
  }
  return results(Tensor(out, {regions.count, channels, regions.out_height, regions.out_width}).cast(x.dtype()));
}

struct Box {
  double y1, x1, y2, x2;
  double area() const { return (y2 - y1) * (x2 - x1); }
};
Box box_at(std::span<const double> numbers, size_t i, bool is_center) {
  const double a = numbers[i * 4], b = numbers[i * 4 + 1], p = numbers[i * 4 + 2], q = numbers[i * 4 + 3];
  if (is_center) return {b - q / 2, a - p / 2, b + q / 2, a + p / 2};  // x, y, width, height
  return {std::min(a, p), std::min(b, q), std::max(a, p), std::max(b, q)};
}
bool overlap_much(const Box& a, const Box& b, double threshold) {
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1), width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return false;
  const double shared = height * width, joined = a.area() + b.area() - shared;
  return a.area() > 0 && b.area() > 0 && joined > 0 && shared / joined > threshold;
}

/// The boxes with the highest scores, less those that overlap one of them too much; computed on the host.
Results non_max_suppression(Call& c) {
  const HostArray boxes_array = c.host(0), scores_array = c.host(1);
  const std::vector<double> boxes = boxes_array.numbers(), scores = scores_array.numbers();
  const Sizes &b_shape = boxes_array.shape, &s_shape = scores_array.shape;
  if (b_shape.size() != 3 || s_shape.size() != 3 || b_shape[2] != 4 || b_shape[0] != s_shape[0] || b_shape[1] != s_shape[2])
    c.fail(fmt::format("boxes ({}) and scores ({})", fmt::join(b_shape, ", "), fmt::join(s_shape, ", ")));
  const size_t batches = size_t(b_shape[0]), count = size_t(b_shape[1]), classes = size_t(s_shape[1]);
  const int64_t most = c.has(2) ? std::max<int64_t>(0, c.integer(2)) : 0;
  const double overlap = c.has(3) ? c.number(3) : 0;
  std::optional<double> least;
  if (c.has(4)) least = c.number(4);
  const bool is_center = c.flag("center_point_box");
  std::vector<int64_t> out;
  for (size_t b = 0; b < batches; ++b) {
    for (size_t k = 0; k < classes; ++k) {
      const double* score = scores.data() + (b * classes + k) * count;
      std::vector<size_t> order;
      for (size_t i = 0; i < count; ++i)
        if (!least || score[i] > *least) order.push_back(i);
      // What is no number comes last.
      const auto rank = [&](size_t i) { return std::isnan(score[i]) ? -std::numeric_limits<double>::infinity() : score[i]; };
      std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return rank(i) > rank(j); });
      std::vector<Box> chosen;
      for (size_t i : order) {
        if (int64_t(chosen.size()) >= most) break;
        c.take_steps(int64_t(chosen.size()) / 128 + 1);
        const Box box = box_at(std::span(boxes).subspan(b * count * 4), i, is_center);
        if (std::any_of(chosen.begin(), chosen.end(), [&](const Box& other) { return overlap_much(other, box, overlap); })) continue;
        chosen.push_back(box);
        out.insert(out.end(), {int64_t(b), int64_t(k), int64_t(i)});
      }
    }
  }
  return {host_value(HostArray::of(ElementType::int64, {int64_t(out.size() / 3), 3}, out))};
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "AffineGrid", 20, affine_grid},
    {onnx_domain, "GridSample", 16, grid_sample},
    {onnx_domain, "NonMaxSuppression", 10, non_max_suppression},
    {onnx_domain, "Resize", 10, resize},
    {onnx_domain, "RoiAlign", 10, roi_align},
    {onnx_domain, "Upsample", 1, upsample},
};

}  // namespace

std::span<const OperatorRow> image_operators() { return rows; }

}  // namespace tinygrad::onnx
