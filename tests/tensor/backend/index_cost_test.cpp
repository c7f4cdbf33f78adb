// Large lists of indices: right, in a fixed order, and not by comparing all with all.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int>;

class LargeIndices : public testing::Test {
 protected:
  Ints indices(int64_t count, int n) {
    std::uniform_int_distribution<int> any(0, n - 1);
    Ints out(static_cast<size_t>(count));
    for (int& i : out) i = any(generator_);
    return out;
  }
  Floats numbers(int64_t count) {
    std::uniform_real_distribution<float> any(-1, 1);
    Floats out(static_cast<size_t>(count));
    for (float& v : out) v = any(generator_);
    return out;
  }
  static void expect_near(const Tensor& got, const Floats& wanted) {
    const Floats values = got.tolist();
    ASSERT_EQ(values.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(values[i], wanted[i], 1e-4) << "element " << i;
  }
  /// Operations that computing the value takes.
  static uint64_t ops_of(const Tensor& t) {
    GlobalCounters::reset();
    t.realize();
    return GlobalCounters::global_ops;
  }

  Context on_device_{{.dev = "CPU"}};
  std::mt19937 generator_{3};
};

TEST_F(LargeIndices, GradientOfAnEmbedding) {
  constexpr int rows = 20000, width = 8, tokens = 3000;
  const Ints ids = indices(tokens, rows / 20);
  const Floats g = numbers(tokens * width);
  const Tensor weight = Tensor::zeros({rows, width}).contiguous().realize(), index = Tensor(ids).reshape({3, tokens / 3}).realize();
  const Tensor upstream = Tensor(g, {3, tokens / 3, width}).realize();
  Floats wanted(rows * width);
  for (size_t t = 0; t < tokens; ++t)
    for (size_t c = 0; c < width; ++c) wanted[size_t(ids[t]) * width + c] += g[t * width + c];
  const Tensor gradient = (weight[index] * upstream).sum().gradient({weight})[0];
  EXPECT_LT(ops_of(gradient), 100u * (rows * width + tokens * width));
  expect_near(gradient, wanted);
  EXPECT_EQ(gradient.tolist(), (weight[index] * upstream).sum().gradient({weight})[0].tolist());
}

TEST_F(LargeIndices, GradientOfGather) {
  constexpr int lanes = 3, n = 5000, m = 2000;
  const Ints ids = indices(lanes * m, n);
  const Floats g = numbers(lanes * m);
  const Tensor x(numbers(lanes * n), {lanes, n}), index(ids, {lanes, m});
  Floats wanted(lanes * n);
  for (size_t l = 0; l < lanes; ++l)
    for (size_t j = 0; j < m; ++j) wanted[l * n + size_t(ids[l * m + j])] += g[l * m + j];
  const auto gradient = [&](const Tensor& v, const Tensor& i, int axis, const Tensor& by) {
    return (v.gather(axis, i) * by).sum().gradient({v})[0];
  };
  expect_near(gradient(x, index, 1, Tensor(g, {lanes, m})), wanted);
  expect_near(gradient(x.T(), index.T(), 0, Tensor(g, {lanes, m}).T()).T(), wanted);
}

TEST_F(LargeIndices, ScatterTheLastWins) {
  constexpr int n = 30000, m = 4000;
  const Ints ids = indices(m, 2000);
  const Floats values = numbers(m), before = numbers(n);
  Floats wanted = before;
  for (size_t j = 0; j < m; ++j) wanted[size_t(ids[j])] = values[j];
  const Tensor x = Tensor(before).realize(), index = Tensor(ids).realize(), src = Tensor(values).realize();
  const Tensor y = x.scatter(0, index, src);
  EXPECT_LT(ops_of(y), 1000u * (n + m));
  EXPECT_EQ(y.tolist(), wanted);
  Tensor z = x.clone();
  z.set_item({index}, src);
  EXPECT_EQ(z.tolist(), wanted);
}

TEST_F(LargeIndices, ScatterReduce) {
  constexpr int n = 10000, m = 3000;
  const Ints ids = indices(m, 500);
  const Floats values = numbers(m), before = numbers(n);
  const Tensor x(before), index(ids), src(values);
  Floats sum = before, most = before, mean = before;
  Ints count(n, 0);
  for (size_t j = 0; j < m; ++j) {
    sum[size_t(ids[j])] += values[j];
    most[size_t(ids[j])] = std::max(most[size_t(ids[j])], values[j]);
    ++count[size_t(ids[j])];
  }
  for (size_t i = 0; i < n; ++i) mean[i] = count[i] ? (sum[i] - before[i]) / float(count[i]) : before[i];
  expect_near(x.scatter_reduce(0, index, src, ScatterMode::sum), sum);
  EXPECT_EQ(x.scatter_reduce(0, index, src, ScatterMode::amax).tolist(), most);
  expect_near(x.scatter_reduce(0, index, src, ScatterMode::mean, false), mean);
}

TEST_F(LargeIndices, ScatterCoversAPart) {
  constexpr int rows = 4, n = 6000, m = 3000;
  const Ints ids = indices(2 * m, n);
  const Floats values = numbers(2 * m);
  Floats wanted(rows * n, 1);
  for (size_t r = 0; r < 2; ++r)
    for (size_t j = 0; j < m; ++j) wanted[r * n + size_t(ids[r * m + j])] = values[r * m + j];
  EXPECT_EQ(Tensor::ones({rows, n}).scatter(1, Tensor(ids, {2, m}), Tensor(values, {2, m})).tolist(), wanted);
}

TEST_F(LargeIndices, MaskedSelectAndNonzero) {
  constexpr int rows = 40, n = 400;
  const Floats values = numbers(rows * n);
  const Tensor x = Tensor(values, {rows, n}).realize();
  Floats wanted;
  Ints places;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] > 0.2f) {
      wanted.push_back(values[i]);
      places.push_back(int(i / n));
      places.push_back(int(i % n));
    }
  EXPECT_EQ(x.masked_select(x > 0.2).tolist(), wanted);
  EXPECT_EQ((x > 0.2).nonzero().tolist<int>(), places);
  EXPECT_EQ(x[{x > 0.2}].tolist(), wanted);
  const int64_t more = static_cast<int64_t>(wanted.size()) + 3;
  for (int i = 0; i < 3; ++i) wanted.push_back(7);
  EXPECT_EQ(x.masked_select(x > 0.2, more, 7).tolist(), wanted);
  EXPECT_LT(ops_of(x.masked_select(x > 0.2, more)), 1000u * rows * n);
}

}  // namespace
}  // namespace tinygrad
