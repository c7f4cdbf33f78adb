#include "ops/resize.h"

#include <tinygrad/errors.h>

#include <algorithm>

#include "ops/movement.h"
#include "support.h"

namespace tinygrad::ops {
namespace {

using Sizes = std::vector<int64_t>;

/// One output of a row, sampled at its position.
double sample(const Values& row, int64_t i, int64_t out, const InterpolateOptions& o) {
  const int64_t n = int64_t(row.size());
  auto at = [&](int64_t k) { return row[size_t(std::min(k, n - 1))]; };
  const float scale = float(n) / float(out);
  if (o.mode == Interpolation::nearest) return at(int64_t(std::floor(float(i) * scale)));
  if (o.mode == Interpolation::nearest_exact) return at(int64_t(std::floor((float(i) + 0.5f) * scale)));
  const double aligned = out > 1 ? double(i) * double(n - 1) / double(out - 1) : 0;
  const double position = o.align_corners ? aligned : std::max(0.0, (double(i) + 0.5) * double(n) / double(out) - 0.5);
  const double low = std::floor(position + 1e-12), weight = std::max(position - low, 0.0);
  return at(int64_t(low)) * (1 - weight) + at(int64_t(low) + 1) * weight;
}

/// Resizes axis `axis` of row-major values, and their shape.
Values resized(const Values& x, Sizes& shape, size_t axis, int64_t out, const InterpolateOptions& o) {
  auto count = [&](size_t begin, size_t end) {
    return std::accumulate(shape.begin() + long(begin), shape.begin() + long(end), int64_t{1}, std::multiplies<>());
  };
  const int64_t outer = count(0, axis), inner = count(axis + 1, shape.size()), n = shape[axis];
  Values y(size_t(outer * out * inner));
  for (int64_t b = 0; b < outer; ++b)
    for (int64_t c = 0; c < inner; ++c) {
      Values row;
      for (int64_t i = 0; i < n; ++i) row.push_back(x[size_t((b * n + i) * inner + c)]);
      for (int64_t i = 0; i < out; ++i) y[size_t((b * out + i) * inner + c)] = sample(row, i, out, o);
    }
  shape[axis] = out;
  return y;
}

class ResizeTest : public OpsTest {
 protected:
  void check(std::initializer_list<int64_t> shape, const Sizes& size, const InterpolateOptions& o, DType dtype = DType::float64) {
    const Values data = numbers(size_t(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())), -5, 5);
    const UOp x = tensor(shape, data, dtype), y = interpolate(x, size, o);
    SCOPED_TRACE(to_string(shape_of(x)) + " to " + to_string(shape_of(y)));
    EXPECT_EQ(y.dtype(), dtype);
    Values want = values(x);
    Sizes now(shape);
    for (size_t k = 0; k < size.size(); ++k) want = resized(want, now, now.size() - size.size() + k, size[k], o);
    expect_values(y, want, dtype == DType::float64 ? 1e-12 : dtype == DType::float32 ? 1e-6 : 1e-3);
  }
};

constexpr InterpolateOptions linear{}, aligned{.align_corners = true}, nearest{.mode = Interpolation::nearest},
    exact{.mode = Interpolation::nearest_exact};

TEST_F(ResizeTest, OneAxis) {
  for (const InterpolateOptions& o : {linear, aligned, nearest, exact}) {
    for (int64_t out : {1, 2, 3, 5, 7, 10, 14, 15, 29}) check({2, 1, 7}, {out}, o);
    check({1}, {4}, o);
    check({6}, {1}, o);
    check({2, 7}, {29}, o, DType::float32);
    check({2, 7}, {5}, o, DType::float16);
  }
}

TEST_F(ResizeTest, SeveralAxes) {
  for (const InterpolateOptions& o : {linear, aligned, nearest, exact}) {
    check({2, 3, 4, 5}, {7, 3}, o);
    check({4, 5}, {8, 10}, o);
    check({1, 2, 3, 2, 4}, {2, 5, 3}, o);
    check({1, 1, 3, 3}, {6, 2}, o, DType::float32);
  }
}

TEST_F(ResizeTest, KnownValues) {
  const UOp x = tensor({4}, {1, 2, 3, 4});
  auto of = [&](int64_t size, const InterpolateOptions& o) { return interpolate(x, Sizes{size}, o); };
  expect_values(of(8, linear), {1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4});
  expect_values(of(7, aligned), {1, 1.5, 2, 2.5, 3, 3.5, 4});
  expect_values(of(3, nearest), {1, 2, 3});
  expect_values(of(3, exact), {1, 3, 4});
  EXPECT_EQ(values(of(4, linear)), values(x));
  // A weight of 0 does not hide an infinity, as in PyTorch.
  expect_values(interpolate(tensor({2}, {1, inf}), Sizes{4}), {nan, inf, inf, inf});
  expect_values(interpolate(tensor({2}, {1, inf}), Sizes{4}, nearest), {1, 1, inf, inf});
}

TEST_F(ResizeTest, Integers) {
  const UOp bytes = tensor({1, 4}, {0, 255, 10, 13}, DType::uint8), ints = tensor({4}, {0, 255, 10, -13}, DType::int32);
  EXPECT_EQ(interpolate(bytes, Sizes{7}).dtype(), DType::uint8);
  // Rounded: 127.5, 132.5, 11.5.
  expect_values(interpolate(bytes, Sizes{7}, aligned), {0, 128, 255, 133, 10, 12, 13});
  expect_values(interpolate(ints, Sizes{7}, aligned), {0, 127, 255, 132, 10, -1, -13});
  expect_values(interpolate(ints, Sizes{2}, nearest), {0, 10});
  const UOp flags = interpolate(tensor({2}, {0, 1}, DType::bool_), Sizes{4}, nearest);
  EXPECT_EQ(flags.dtype(), DType::bool_);
  expect_values(flags, {0, 0, 1, 1});
}

TEST_F(ResizeTest, ViewsAndEmptyBatches) {
  const UOp x = ops::transpose(tensor({3, 2}, {1, 2, 3, 4, 5, 6}), 0, 1);  // (1, 3, 5), (2, 4, 6)
  expect_values(interpolate(x, Sizes{5}, aligned), {1, 2, 3, 4, 5, 2, 3, 4, 5, 6});
  expect_values(interpolate(ops::expand(tensor({1}, {3}), Shape{4}), Sizes{2}), {3, 3});
  expect_shape(interpolate(tensor({0, 3}, {}), Sizes{5}), "(0, 5)");
}

TEST_F(ResizeTest, Errors) {
  const UOp x = counting({2, 3});
  EXPECT_EQ(message_of<ValueError>([&] { interpolate(x, Sizes{}); }), "interpolate: 0 sizes for the last axes of (2, 3), expects 1 to 2");
  EXPECT_EQ(message_of<ValueError>([&] { interpolate(x, Sizes{1, 2, 3}); }),
            "interpolate: 3 sizes for the last axes of (2, 3), expects 1 to 2");
  EXPECT_EQ(message_of<ValueError>([&] { interpolate(x, Sizes{4, 0}); }), "interpolate: the size (4, 0), expects at least 1 an axis");
  EXPECT_EQ(message_of<ShapeError>([&] { interpolate(tensor({2, 0}, {}), Sizes{4}); }),
            "interpolate: axis 1 of (2, 0) is to be resized and must have a known size of at least 1");
  EXPECT_EQ(message_of<ValueError>([&] { interpolate(x, Sizes{4}, {.mode = Interpolation::nearest, .align_corners = true}); }),
            "interpolate: align_corners is for the mode linear only");
  EXPECT_EQ(message_of<ValueError>([] { interpolation_named("cubic"); }),
            "interpolate: the mode \"cubic\", expects linear, nearest or nearest-exact");
  EXPECT_EQ(interpolation_named("nearest-exact"), Interpolation::nearest_exact);
}

}  // namespace
}  // namespace tinygrad::ops
