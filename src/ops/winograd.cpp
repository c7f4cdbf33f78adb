#include "ops/winograd.h"

#include <array>
#include <vector>

#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "shape/shape.h"
#include "target/costs.h"
#include "uop/build.h"

// Results and windows are polynomials: the correlation of m + r - 1 elements with a window of r is the transpose of a product of
// polynomials of degrees m - 1 and r - 1, which its values at as many points determine. So y = A ((G w) * (B x)),
// where G and A evaluate at the points, the last of which is infinity, and B has the polynomials that are 0 at all points but one.

namespace tinygrad::ops {

namespace {

constexpr int64_t kPoints = 6;
/// The points before infinity. Multiples of a quarter are exact; 0, 1, -1, 2 and -2 would need fewer operations and round twice as much.
constexpr double points[kPoints - 1] = {0, 0.75, -0.75, 1.5, -1.5};

using Matrix = std::vector<std::vector<double>>;

/// The coefficients of the product of x - p over all points p but one; of all points for the last, which is infinity.
std::vector<double> polynomial_without(size_t point) {
  std::vector<double> out(kPoints);
  out[0] = 1;
  for (size_t k = 0; k < std::size(points); ++k) {
    if (k == point) continue;
    for (size_t i = kPoints - 1; i > 0; --i) out[i] = out[i - 1] - points[k] * out[i];
    out[0] *= -points[k];
  }
  return out;
}

Matrix input_matrix() {
  Matrix out;
  for (size_t i = 0; i < size_t(kPoints); ++i) out.push_back(polynomial_without(i));
  return out;
}

/// The powers of each point below `count`: one row a point.
Matrix powers(int64_t count) {
  Matrix out;
  for (const double p : points) {
    double power = 1;
    for (auto& row = out.emplace_back(); int64_t(row.size()) < count; power *= p) row.push_back(power);
  }
  out.emplace_back(count).back() = 1;
  return out;
}

Matrix window_matrix(int64_t window) {
  Matrix out = powers(window);
  for (size_t i = 0; i < std::size(points); ++i)
    for (size_t k = 0; k < std::size(points); ++k)
      for (double& x : out[i]) x /= k == i ? 1 : points[i] - points[k];
  return out;
}

Matrix output_matrix(int64_t results) {
  const Matrix of_points = powers(results);
  Matrix out(static_cast<size_t>(results), std::vector<double>(kPoints));
  for (size_t i = 0; i < out.size(); ++i)
    for (size_t k = 0; k < of_points.size(); ++k) out[i][k] = of_points[k][i];
  return out;
}

Matrix transposed(const Matrix& m) {
  Matrix out(m[0].size(), std::vector<double>(m.size()));
  for (size_t i = 0; i < m.size(); ++i)
    for (size_t k = 0; k < m[i].size(); ++k) out[k][i] = m[i][k];
  return out;
}

using Vector = std::vector<UOp>;

UOp dot(const std::vector<double>& row, const Vector& x) {
  UOp total;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == 0) continue;
    const UOp term = row[i] == 1 ? x[i] : mul(x[i], constant(x[i].dtype(), row[i]));
    total = total ? add(total, term) : term;
  }
  return total;
}

Vector product(const Matrix& matrix, const Vector& x) {
  Vector out;
  for (const auto& row : matrix) out.push_back(dot(row, x));
  return out;
}

/// The slices of the first axis.
Vector slices(const UOp& x) {
  Vector out;
  for (int64_t i = 0; i < shape_of(x)[0].value(); ++i) out.push_back(squeeze(shrink_axis(x, 0, i, i + 1), 0));
  return out;
}

/// A linear map of the first axis, whose gradient is its transpose, written as directly as the map: what follows from shrinking and
/// stacking are sums of padded parts.
class LinearMap : public GradientRule {
 public:
  virtual UOp of(const UOp& x) const = 0;
  virtual UOp transpose(const UOp& g, const Shape& shape) const = 0;
  std::vector<UOp> gradients(const UOp& call, std::span<const UOp> given) const override {
    return {transpose(given[0], shape_of(call.src(1)))};
  }
};

/// A matrix times the vectors along the axis.
class Product final : public LinearMap {
 public:
  explicit Product(Matrix m) : matrix_(std::move(m)), transposed_(transposed(matrix_)) {}
  UOp of(const UOp& x) const override { return stack(product(matrix_, slices(x)), 0); }
  UOp transpose(const UOp& g, const Shape&) const override { return stack(product(transposed_, slices(g)), 0); }

 private:
  Matrix matrix_, transposed_;
};

/// The input's matrix times kPoints elements from every `results`-th on: (elements) becomes (kPoints, tiles).
class Tiles final : public LinearMap {
 public:
  explicit Tiles(int64_t results) : results_(results) {}

  UOp of(const UOp& x) const override {
    const int64_t tiles = shape_of(x)[0].value() / results_ - rows_beyond(results_);
    const Vector columns = slices(ops::transpose(ops::unflatten(x, 0, Shape{-1, results_})));
    Vector of_tile;
    for (int64_t k = 0; k < kPoints; ++k)
      of_tile.push_back(shrink_axis(columns[size_t(k % results_)], 0, k / results_, k / results_ + tiles));
    return stack(product(matrix_, of_tile), 0);
  }
  UOp transpose(const UOp& g, const Shape& shape) const override {
    const int64_t rows = shape[0].value() / results_;
    const Vector of_tile = product(transposed_, slices(g));
    Vector columns(static_cast<size_t>(results_));
    for (int64_t k = 0; k < kPoints; ++k) {
      const UOp& x = of_tile[size_t(k)];
      const UOp part = pad_axis(x, 0, k / results_, rows - k / results_ - shape_of(x)[0].value());
      UOp& column = columns[size_t(k % results_)];
      column = column ? add(column, part) : part;
    }
    return ops::reshape(ops::transpose(stack(columns, 0)), shape);
  }

  /// Pieces of that many elements that the last tile reaches into.
  static int64_t rows_beyond(int64_t results) { return (kPoints - 1) / results; }

 private:
  int64_t results_;
  Matrix matrix_ = input_matrix(), transposed_ = transposed(matrix_);
};

UOp apply(const IntrusivePtr<LinearMap>& map, const UOp& x) {
  return call_function(map->of(param_like(x, 0)), std::span(&x, 1), Symbol("winograd"), IntrusivePtr<GradientRule>(map.get()));
}

/// The maps for a window along an axis, always the same.
struct Maps {
  IntrusivePtr<LinearMap> tiles, window, output;

  explicit Maps(int64_t size)
      : tiles(new Tiles(kPoints - size + 1)),
        window(new Product(window_matrix(size))),
        output(new Product(output_matrix(kPoints - size + 1))) {}
  static const Maps& of(int64_t window) {
    static const auto& maps = *new std::array<Maps, kPoints - 2>{Maps(2), Maps(3), Maps(4), Maps(5)};
    return maps[size_t(window - 2)];
  }
};

/// In memory, and so its gradient: many products use each element of both.
UOp stored(const UOp& x) { return contiguous(contiguous_backward(x)); }

/// What there is along an axis of the image.
struct Along {
  int64_t window, size, results, tiles;
  const Maps& maps;

  Along(const UOp& x, const UOp& weight, size_t axis)
      : window(shape_of(weight)[axis].value()),
        size(shape_of(x)[axis].value() - window + 1),
        results(kPoints - window + 1),
        tiles((size + results - 1) / results),
        maps(Maps::of(window)) {}
  /// Elements that tiles are taken from.
  int64_t padded() const { return (tiles + Tiles::rows_beyond(results)) * results; }
};

UOp pad_to(const UOp& x, int axis, int64_t size) { return pad_axis(x, axis, 0, size - shape_of(x)[size_t(axis)].value()); }

}  // namespace

bool suits_winograd(const UOp& x, const UOp& weight) {
  if (rank_of(x) != 4 || !is_float(x.dtype())) return false;
  for (size_t axis : {2, 3}) {
    const SInt &window = shape_of(weight)[axis], &size = shape_of(x)[axis];
    if (!window.known() || window.value() < 2 || window.value() >= kPoints || !size.known() || size.value() < window.value()) return false;
  }
  return true;
}

bool winograd_pays(const UOp& x, const UOp& weight, int64_t groups, bool fixed_windows) {
  constexpr double most_bytes = 1 << 30;
  // If windows are learned, gradients are transformed too: a dozen more kernels to compile, and 2.25 times the image stays in memory.
  const double worth = fixed_windows ? 0.9 : 0.7;
  const Shape xs = shape_of(x), ws = shape_of(weight);
  const Along down(x, weight, 2), across(x, weight, 3);
  const double out = double(ws[0].max()), in = double(ws[1].max()), images = double(xs[0].max()), channels = in * double(groups);
  const double pairs = out * in, tiles = images * double(down.tiles * across.tiles), window = double(down.window * across.window);
  const double direct = pairs * window * images * double(down.size * across.size);
  const double rows = double(kPoints * down.tiles * across.padded()) * images;
  const double read = double(xs[2].value() * xs[3].value()) * images + 2 * rows + 2 * double(kPoints * kPoints) * tiles;
  const double sums = 2 * double(kPoints * kPoints + kPoints * down.results) * tiles;
  const double transformed = double(kPoints * kPoints) * pairs;
  const double transforms = (window + 2 * double(kPoints * across.window)) * pairs + transformed;
  const double moved = read * channels + sums * out + transformed + (fixed_windows ? 0 : transforms);
  const double kept = double(kPoints * kPoints) * tiles * (channels + out) + transformed;
  if (itemsize(x.dtype()) < int(sizeof(float)) || kept * double(itemsize(x.dtype())) > most_bytes) return false;
  return double(kPoints * kPoints) * pairs * tiles + general_costs().memory.moved_element * moved < worth * direct;
}

UOp winograd_conv2d(const UOp& x, const UOp& weight, int64_t groups) {
  const Shape xs = shape_of(x), ws = shape_of(weight);
  const Along down(x, weight, 2), across(x, weight, 3);
  const SInt out_per_group = floor_div(ws[0], groups), tiles = xs[0] * down.tiles * across.tiles;
  const UOp padded = contiguous_backward(pad_to(pad_to(x, 2, down.padded()), 3, across.padded()));
  // Along both axes in turn, then a matrix product for each pair of points: (6, 6, groups, out, in, tiles).
  const UOp rows = stored(ops::permute(apply(down.maps.tiles, ops::permute(padded, Axes{2, 1, 0, 3})), Axes{0, 2, 3, 1, 4}));
  const UOp values = stored(ops::permute(apply(across.maps.tiles, ops::permute(rows, Axes{4, 0, 1, 2, 3})), Axes{0, 2, 3, 4, 5, 1}));
  const UOp right = ops::reshape(values, Shape{kPoints, kPoints, groups, 1, ws[1], tiles});
  const UOp window_rows = stored(apply(down.maps.window, ops::permute(weight, Axes{2, 0, 1, 3})));
  const UOp windows = stored(apply(across.maps.window, ops::permute(window_rows, Axes{3, 0, 1, 2})));
  const UOp left = ops::reshape(windows, Shape{kPoints, kPoints, groups, out_per_group, ws[1], 1});
  const UOp products = stored(sum(mul(left, right), Axes{4}, false, x.dtype()));
  const UOp sums = ops::reshape(products, Shape{kPoints, kPoints, ws[0], xs[0], down.tiles, across.tiles});
  const UOp columns = stored(apply(down.maps.output, ops::transpose(sums)));
  const UOp results = ops::permute(apply(across.maps.output, ops::transpose(columns)), Axes{3, 2, 4, 1, 5, 0});
  const UOp image = ops::reshape(results, Shape{xs[0], ws[0], down.tiles * down.results, across.tiles * across.results});
  return shrink_axis(shrink_axis(image, 2, 0, down.size), 3, 0, across.size);
}

}  // namespace tinygrad::ops
