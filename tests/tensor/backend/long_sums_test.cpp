// Long sums of floats, whatever the axis, the layout and the opts: an error of at most 1e-6 of the sum of the magnitudes.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

constexpr unsigned seed = 29;

/// Numbers whose rounding errors add up: all of one sign, or one number again and again.
Floats numbers(size_t count, bool same) {
  if (same) return Floats(count, 0.1f);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  Floats out(count);
  for (float& x : out) x = uniform(generator);
  return out;
}

/// Sums along an axis of a matrix, in double.
std::vector<double> exact_sums(const Floats& x, size_t rows, size_t columns, int axis) {
  std::vector<double> out(axis == 0 ? columns : rows);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) out[axis == 0 ? j : i] += double(x[i * columns + j]);
  return out;
}

void expect_near(const Tensor& got, const std::vector<double>& want, const std::string& what, double bound = 1e-6) {
  const Floats values = got.tolist();
  ASSERT_EQ(values.size(), want.size());
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(double(values[i]) - want[i]) / std::abs(want[i]));
  EXPECT_LE(worst, bound) << what;
}

class LongSums : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Opts, LongSums, testing::Bool(), [](const auto& p) { return p.param ? "Without" : "With"; });

// What is repeated along the axis is one number again and again, however many results share it.
TEST_P(LongSums, OfExpandedAxes) {
  const Context options{{.noopt = GetParam()}};
  Floats x(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f + 0.05f * float(i);
  for (const int64_t count : {256, 999, 2047, 4093, 4097}) {
    std::vector<double> want(x.begin(), x.end());
    for (double& w : want) w *= double(count);
    const Tensor column = Tensor(x).reshape({16, 1}).realize();
    expect_near(column.expand({16, count}).sum(1), want, std::to_string(count) + " copies");
    expect_near((column * Tensor::ones({16, count}).contiguous().realize()).sum(1), want, std::to_string(count) + " times 1");
  }
}

TEST_P(LongSums, OfAllElements) {
  const Context options{{.noopt = GetParam()}};
  for (const bool same : {false, true})
    for (const size_t count : {size_t{100}, size_t{1000}, size_t{4099}, size_t{65536}, size_t{300007}, size_t{1000000}}) {
      const Floats x = numbers(count, same);
      const std::vector<double> want{std::accumulate(x.begin(), x.end(), 0.0)};
      const std::string what = std::to_string(count) + (same ? " of one number" : " of many");
      const Tensor t = Tensor(x).realize();
      expect_near(t.sum(), want, what);
      expect_near(t.mean(), {want[0] / double(count)}, what);
      expect_near((t * t).sum(),
                  {std::inner_product(
                      x.begin(), x.end(), x.begin(), 0.0, [](double a, double b) { return a + b; },
                      [](float a, float b) { return double(a) * double(b); })},
                  what);
      expect_near(t.matmul(Tensor::ones({int64_t(count)}).contiguous().realize()), want, what);
    }
}

TEST_P(LongSums, AlongAxes) {
  const Context options{{.noopt = GetParam()}};
  const auto check = [](size_t rows, size_t columns) {
    const Floats x = numbers(rows * columns, rows % 2 == 0);
    const Tensor t = Tensor(x, {int64_t(rows), int64_t(columns)}).realize();
    const std::string what = std::to_string(rows) + " x " + std::to_string(columns);
    for (int axis : {0, 1}) {
      expect_near(t.sum(axis), exact_sums(x, rows, columns, axis), what + ", axis " + std::to_string(axis));
      expect_near(t.transpose().sum(1 - axis), exact_sums(x, rows, columns, axis), what + " transposed");
    }
    // Every second column, backwards.
    const Tensor part = t[{Slice{}, Slice{.step = -2}}];
    Floats y;
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = columns; j-- > 0; j -= std::min<size_t>(j, 1)) y.push_back(x[i * columns + j]);
    const size_t kept = y.size() / rows;
    if (kept * rows == y.size() && int64_t(kept) == part.size(1))
      for (int axis : {0, 1}) expect_near(part.sum(axis), exact_sums(y, rows, kept, axis), what + " strided");
  };
  check(100000, 3);
  check(4, 100001);
  check(1234, 257);
  check(20000, 16);
}

TEST_P(LongSums, OfSpecialValues) {
  const Context options{{.noopt = GetParam()}};
  Floats x(100000, 0.25f);
  const auto sum = [&] { return Tensor(x).sum().item(); };
  x[70001] = INFINITY;
  EXPECT_EQ(sum(), INFINITY);
  x[90001] = -INFINITY;
  EXPECT_TRUE(std::isnan(sum()));
  x[70001] = -INFINITY;
  EXPECT_EQ(sum(), -INFINITY);
  x[5] = NAN;
  EXPECT_TRUE(std::isnan(sum()));
  EXPECT_EQ(Tensor(Floats(100000, 1e35f)).sum().item(), INFINITY);
  EXPECT_EQ(Tensor(Floats(100000, 0.25f), {.dtype = DType::float16}).sum().item(), 24992);  // 25000 to the even half
}

TEST_P(LongSums, OfProducts) {
  const Context options{{.noopt = GetParam()}};
  constexpr int64_t k = 50000;
  const Floats x = numbers(2 * k, false), y = numbers(3 * k, true);
  const Tensor product = Tensor(x, {2, k}).realize().matmul(Tensor(y, {k, 3}).realize());
  std::vector<double> want(6);
  for (size_t i = 0; i < 6; ++i)
    for (size_t j = 0; j < size_t(k); ++j) want[i] += double(x[i / 3 * k + j]) * double(y[j * 3 + i % 3]);
  expect_near(product, want, "a product", 4e-6);
  const Tensor wide = Tensor(numbers(k * 20, false), {20, k}).realize(), table = wide.matmul(wide.transpose());
  const Tensor twice = wide.to_double().matmul(wide.to_double().transpose());
  EXPECT_LE(((table.to_double() - twice).abs() / twice).max().item(), 4e-6);
}

}  // namespace
}  // namespace tinygrad
