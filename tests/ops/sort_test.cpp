#include <tinygrad/errors.h>

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "support.h"
#include "uop/graph.h"

namespace tinygrad::ops {
namespace {

/// Longer than what is sorted by counting.
constexpr int64_t length = 1100;

class SortTest : public OpsTest {
 protected:
  /// The order that std::stable_sort finds, NaN greatest.
  static std::vector<size_t> order_of(const Values& v, bool descending) {
    std::vector<size_t> order(v.size());
    std::iota(order.begin(), order.end(), size_t{0});
    auto less = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return descending ? less(v[b], v[a]) : less(v[a], v[b]); });
    return order;
  }

  void check(const Values& in, DType dtype, bool descending = false) {
    SCOPED_TRACE(repr(dtype));
    const UOp x = tensor({int64_t(in.size())}, in, dtype);
    Values want;
    for (size_t i : order_of(values(x), descending)) want.push_back(double(i));
    const UOp got = argsort(x, -1, descending);
    EXPECT_EQ(got.dtype(), DType::int32);
    expect_values(got, want, 0);
  }

  Values whole_numbers(size_t count, double low, double high) {
    Values out = numbers(count, low, high);
    for (double& v : out) v = std::floor(v);
    return out;
  }
};

TEST_F(SortTest, LongAxesOfEveryDtype) {
  using enum DType;
  for (DType d : {float32, float16, bfloat16, fp8e4m3, fp8e5m2fnuz}) {
    Values in = numbers(length, -8, 8);
    for (size_t i = 0; i < in.size(); i += 37) in[i] = nan;
    for (size_t i = 5; i < in.size(); i += 41) in[i] = i % 2 ? -0.0 : 0.0;
    if (max_value(d).is_inf()) in[100] = in[900] = inf, in[200] = in[800] = -inf;
    check(in, d);
    check(in, d, true);
  }
  Values wide = numbers(length, -8, 8);
  wide[7] = nan, wide[8] = -inf, wide[9] = wide[10], wide[11] = -0.0, wide[12] = 0.0, wide[13] = 1e-300, wide[14] = -1e300;
  check(wide, float64);
  check(wide, float64, true);
  for (DType d : {int8, int32}) check(whole_numbers(length, -100, 100), d);
  for (DType d : {uint8, uint16, uint32}) check(whole_numbers(length, 0, 200), d, true);
  check(whole_numbers(length, 0, 2), bool_);
  check(whole_numbers(length, -0x1p52, 0x1p52), int64);
  check(whole_numbers(length, -50, 50), int64, true);
  check(whole_numbers(length, 0, 0x1p53), uint64);
}

TEST_F(SortTest, LengthsAroundPowersOfTwo) {
  for (size_t n : {1024u, 1025u, 2048u}) check(whole_numbers(n, -300, 300), DType::int16);
}

TEST_F(SortTest, OtherAxes) {
  const Values in = numbers(size_t(2 * length * 2));
  const UOp x = tensor({2, length, 2}, in, DType::float32);
  const auto got = sort(x, 1, true);
  expect_shape(got.values, "(2, 1100, 2)");
  const Values sorted = values(got.values), at = values(got.indices), stored = values(x);
  for (size_t b = 0; b < 2; ++b)
    for (size_t c = 0; c < 2; ++c) {
      Values column;
      for (size_t i = 0; i < size_t(length); ++i) column.push_back(stored[(b * length + i) * 2 + c]);
      const std::vector<size_t> order = order_of(column, true);
      for (size_t i = 0; i < size_t(length); ++i) {
        ASSERT_EQ(at[(b * length + i) * 2 + c], double(order[i]));
        ASSERT_EQ(sorted[(b * length + i) * 2 + c], column[order[i]]);
      }
    }
  expect_values(argsort(ops::transpose(tensor({2, 2}, {4, 1, 3, 2})), 0), {1, 1, 0, 0});  // rows (4, 3), (1, 2)
}

// Comparing each of these indices with each position would be more than 64 bits count.
TEST_F(SortTest, HugeShapes) {
  for (const Shape& shape : {Shape{2, (int64_t{1} << 31) + 5}, Shape{(int64_t{1} << 31) + 5, 3}}) {
    const UOp x = ops::expand(tensor({1, 1}, {3}, DType::int8), shape);
    const auto got = sort(x, shape[0].value() == 2 ? 1 : 0);
    EXPECT_EQ(shape_of(got.values), shape);
    EXPECT_EQ(shape_of(got.indices), shape);
    EXPECT_EQ(got.indices.dtype(), DType::int64);
  }
}

TEST_F(SortTest, SmallShapes) {
  expect_values(sort(tensor({}, {3})).values, {3});
  expect_values(sort(tensor({}, {3})).indices, {0});
  expect_shape(sort(tensor({0}, {})).values, "(0,)");
  expect_shape(sort(tensor({2, 0}, {})).indices, "(2, 0)");
  expect_shape(sort(tensor({0, length}, {})).values, "(0, 1100)");
  expect_values(sort(tensor({1}, {3}), 0, true).indices, {0});
  expect_values(argsort(ops::expand(tensor({1}, {3}), Shape{4})), {0, 1, 2, 3});
  EXPECT_EQ(message_of<IndexError>([&] { sort(tensor({2}, {1, 2}), 1); }), "sort: axis 1 is out of range, expects -1 to 0");
  EXPECT_EQ(argsort(tensor({2}, {1, 2}), -1, false, {.default_int = DType::int64}).dtype(), DType::int64);
}

TEST_F(SortTest, Topk) {
  const Values in = numbers(length);
  const UOp x = tensor({length}, in);
  const std::vector<size_t> order = order_of(in, true), up = order_of(in, false);
  const auto most = topk(x, 3), least = topk(x, 2, 0, false);
  expect_values(most.values, {in[order[0]], in[order[1]], in[order[2]]});
  expect_values(most.indices, {double(order[0]), double(order[1]), double(order[2])});
  expect_values(least.values, {in[up[0]], in[up[1]]});
  expect_shape(topk(x, 0).values, "(0,)");
  EXPECT_EQ(message_of<ValueError>([&] { topk(x, length + 1); }), "topk: k = 1101 for axis 0 of (1100,)");
}

TEST_F(SortTest, GradientsGoWhereValuesCameFrom) {
  const Values in = numbers(length), weights = numbers(length);
  const UOp x = tensor({length}, in, DType::float64), w = tensor({length}, weights);
  const UOp loss = sum(mul(sort(x).values, w));
  Values want(in.size());
  const std::vector<size_t> order = order_of(in, false);
  for (size_t i = 0; i < order.size(); ++i) want[order[i]] = weights[i];
  expect_values(gradient(loss, constant(DType::float64, 1), std::span(&x, 1))[0], want);
}

TEST_F(SortTest, GraphsGrowWithTheSquareOfTheLogarithm) {
  auto nodes = [&](int64_t n) { return toposort(sort(tensor({n}, Values(size_t(n)), DType::float32)).values).size(); };
  EXPECT_LT(nodes(1024), 60u);  // by counting
  EXPECT_LT(nodes(4096), 600u);
  EXPECT_LT(nodes(65536), 1000u);
}

}  // namespace
}  // namespace tinygrad::ops
