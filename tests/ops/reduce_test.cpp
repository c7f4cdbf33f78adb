#include "ops/reduce.h"

#include <tinygrad/errors.h>

#include <algorithm>

#include "ops/elementwise.h"
#include "support.h"

namespace tinygrad::ops {
namespace {

using ReduceTest = OpsTest;

TEST_F(ReduceTest, AxesAndShapes) {
  const UOp x = counting({2, 3, 4});
  expect_shape(sum(x), "()");
  expect_shape(sum(x, 1), "(2, 4)");
  expect_shape(sum(x, {0, -1}), "(3,)");
  expect_shape(sum(x, {0, -1}, true), "(1, 3, 1)");
  expect_values(sum(x), {276});
  expect_values(sum(x, {0, 2}), {60, 92, 124});
  expect_values(sum(constant(DType::float32, 3), 0), {3});
  EXPECT_EQ(message_of<IndexError>([&] { sum(x, 3); }), "sum: axis 3 is out of range, expects -3 to 2");
  EXPECT_EQ(message_of<ValueError>([&] { ops::max(x, {0, -3}); }), "max: axis 0 is given twice");
}

TEST_F(ReduceTest, AccumulationDtypes) {
  EXPECT_EQ(sum(counting({2}, DType::int8)).dtype(), DType::int64);
  EXPECT_EQ(sum(counting({2}, DType::uint8)).dtype(), DType::int64);
  EXPECT_EQ(sum(counting({2}, DType::bool_)).dtype(), DType::int64);
  EXPECT_EQ(sum(counting({2}, DType::int64)).dtype(), DType::int64);
  EXPECT_EQ(sum(counting({2}, DType::float16)).dtype(), DType::float16);
  EXPECT_EQ(sum(counting({2}, DType::float16), {}, false, DType::float32).dtype(), DType::float32);
  EXPECT_EQ(mean(counting({2}, DType::int8)).dtype(), DType::float32);
  EXPECT_EQ(mean(counting({2}, DType::float16)).dtype(), DType::float16);
  // 4096 + 1 is not a float16; the sum must not stop there.
  expect_values(sum(tensor({4}, {4096, 1, 1, 2}, DType::float16)), {4100});
}

TEST_F(ReduceTest, Values) {
  const UOp x = tensor({2, 3}, {1, -5, 2, 4, 3, -2});
  expect_values(prod(x, 1), {-10, -24});
  expect_values(ops::max(x, 0), {4, 3, 2});
  expect_values(ops::min(x, 1), {-5, -2});
  expect_values(mean(x, 1), {-2.0 / 3, 5.0 / 3});
  expect_values(var(x, 1), {43.0 / 3, 31.0 / 3});
  expect_values(var(x, 1, false, 0), {86.0 / 9, 62.0 / 9});
  expect_values(std_dev(x, 1), {std::sqrt(43.0 / 3), std::sqrt(31.0 / 3)});
  expect_values(ops::min(tensor({3}, {3, -128, 7}, DType::int8)), {-128});
  expect_values(ops::max(tensor({3}, {3, nan, 7})), {nan});
  expect_values(any(tensor({2, 2}, {0, 0, 0, 2}), 1), {0, 1});
  expect_values(all(tensor({2, 2}, {1, 0, 3, 2}), 1), {0, 1});
  expect_values(mean(tensor({0}, {})), {nan});
  expect_values(var(tensor({1}, {4})), {nan});
  expect_values(normalize(tensor({1, 2}, {3, 4})), {0.6, 0.8});
  expect_values(allclose(x, x), {1});
}

TEST_F(ReduceTest, Argmax) {
  const UOp x = tensor({2, 4}, {1, 5, 5, 2, -1, nan, 7, nan});
  expect_values(argmax(x, 1), {1, 1});
  expect_values(argmax(x, 0), {0, 1, 1, 1});
  expect_values(argmin(x, 1), {0, 1});
  expect_shape(argmax(x, 1, true), "(2, 1)");
  expect_values(argmax(tensor({2, 2}, {1, 2, 4, 3})), {2});
  EXPECT_EQ(argmax(x).dtype(), DType::int32);
}

TEST_F(ReduceTest, Softmax) {
  const Values in = numbers(12, -3, 3);
  const UOp x = tensor({3, 4}, in);
  Values soft, logs, sums;
  for (size_t r = 0; r < 3; ++r) {
    double total = 0;
    for (size_t c = 0; c < 4; ++c) total += std::exp(in[r * 4 + c]);
    for (size_t c = 0; c < 4; ++c) {
      soft.push_back(std::exp(in[r * 4 + c]) / total);
      logs.push_back(in[r * 4 + c] - std::log(total));
    }
    sums.push_back(std::log(total));
  }
  expect_values(softmax(x), soft);
  expect_values(log_softmax(x), logs);
  expect_values(logsumexp(x, 1), sums);
  expect_values(softmin(neg(x)), soft);
  expect_values(softmax(tensor({2}, {1000, 1000})), {0.5, 0.5});
  expect_values(logsumexp(tensor({2}, {-inf, -inf})), {-inf});
  EXPECT_EQ(softmax(tensor({2}, {1, 2}, DType::float16), -1, DType::float32).dtype(), DType::float32);
}

TEST_F(ReduceTest, RunningReductions) {
  const UOp x = tensor({2, 4}, {1, 3, 2, 3, -1, -4, 5, 0});
  expect_values(cumsum(x, 1), {1, 4, 6, 9, -1, -5, 0, 0});
  expect_values(cumsum(x, 0), {1, 3, 2, 3, 0, -1, 7, 3});
  expect_values(cumprod(x, 1), {1, 3, 6, 18, -1, 4, 20, 0});
  const auto greatest = cummax(x, 1), least = cummin(x, 1);
  expect_values(greatest.values, {1, 3, 3, 3, -1, -1, 5, 5});
  expect_values(greatest.indices, {0, 1, 1, 3, 0, 0, 2, 2});
  expect_values(least.values, {1, 1, 1, 1, -1, -4, -4, -4});
  expect_values(logcumsumexp(tensor({3}, {0, 0, 0})), {0, std::log(2.0), std::log(3.0)});
  EXPECT_EQ(cumsum(counting({3}, DType::int8)).dtype(), DType::int64);
  Values triangle;
  for (int i = 0; i < 700; ++i) triangle.push_back(i * (i + 1) / 2.0);
  expect_values(cumsum(counting({700}, DType::int32)), triangle);
}

TEST_F(ReduceTest, Sorting) {
  const UOp x = tensor({2, 5}, {3, 1, nan, 1, 2, -inf, inf, 0, 0, -5});
  const auto up = sort(x), down = sort(x, -1, true);
  expect_values(up.values, {1, 1, 2, 3, nan, -inf, -5, 0, 0, inf});
  expect_values(up.indices, {1, 3, 4, 0, 2, 0, 4, 2, 3, 1});
  expect_values(down.values, {nan, 3, 2, 1, 1, inf, 0, 0, -5, -inf});
  expect_values(down.indices, {2, 0, 4, 1, 3, 1, 2, 3, 4, 0});
  expect_values(sort(tensor({3, 1}, {3, 1, 2}), 0).values, {1, 2, 3});
  const auto top = topk(tensor({5}, {4, 9, 1, 7, 3}), 2);
  expect_values(top.values, {9, 7});
  expect_values(top.indices, {1, 3});
  EXPECT_THROW(topk(x, 6), ValueError);
}

}  // namespace
}  // namespace tinygrad::ops
