// Tensors as a user sees them, on every device that computes.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

#include <limits>

#include "runtime/every_device.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

class TensorOn : public test::EveryDevice {};
INSTANTIATE_TEST_SUITE_P(All, TensorOn, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

TEST_P(TensorOn, FromValuesAndBack) {
  EXPECT_EQ(Tensor({1.0, 2.0, 3.0}).tolist(), (Floats{1, 2, 3}));
  EXPECT_EQ(Tensor({1.0, 2.0}).dtype(), DType::float32);
  EXPECT_EQ(Tensor({1, 2}).dtype(), DType::int32);
  const Tensor m({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(m.shape(), (Sizes{2, 3}));
  EXPECT_EQ(m.T().tolist<int>(), (std::vector<int>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Tensor(2.5).item(), 2.5);
  EXPECT_EQ(Tensor(true).dtype(), DType::bool_);
  EXPECT_EQ(Tensor({true, false}).tolist<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(Tensor(std::vector<double>{1, 2, 3, 4}, {2, 2}).dtype(), DType::float64);
  EXPECT_EQ(Tensor::zeros({0, 3}).tolist(), Floats{});
}

TEST_P(TensorOn, LeastIntegersAsConstants) {
  const auto check = [](auto of, DType dtype) {
    using T = decltype(of);
    constexpr T least = std::numeric_limits<T>::min();
    EXPECT_EQ(Tensor::full({3}, int64_t(least), {.dtype = dtype}).contiguous().tolist<T>(), std::vector<T>(3, least));
  };
  check(int8_t{}, DType::int8);
  check(int16_t{}, DType::int16);
  check(int32_t{}, DType::int32);
  check(int64_t{}, DType::int64);
}

TEST_P(TensorOn, Arithmetic) {
  const Tensor a({1.0, 2.0, 3.0}), b({4.0, 5.0, 6.0});
  EXPECT_EQ((a + b * 2).tolist(), (Floats{9, 12, 15}));
  EXPECT_EQ((1 - a).tolist(), (Floats{0, -1, -2}));
  EXPECT_EQ((a < 2).tolist<bool>(), (std::vector<bool>{true, false, false}));
  EXPECT_EQ((a.half() + 1.5).dtype(), DType::float16);
  EXPECT_EQ((Tensor({1, 2}) / 2).tolist(), (Floats{0.5, 1}));
  EXPECT_EQ(a.matmul(b).item(), 32);
  EXPECT_EQ(a.sum().item(), 6);
  EXPECT_EQ(a.where(b, 0).tolist(), (Floats{4, 5, 6}));
}

TEST_P(TensorOn, ProductsOfNarrowNumbersAreSummedUpWide) {
  const auto some = [](int64_t seed, Sizes shape, DType dtype, int low) {
    Tensor::manual_seed(uint64_t(seed));
    return Tensor::randint(shape, low, low + 256).cast(dtype).realize();
  };
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{8, 32, 16}, {37, 53, 35}, {5, 70, 3}, {1, 40, 130}, {33, 1, 65}}) {
    const Tensor a = some(1, {m, k}, DType::uint8, 0), b = some(2, {k, n}, DType::int8, -128);
    const auto exact = a.cast(DType::int64).matmul(b.cast(DType::int64)).tolist<int>();
    EXPECT_EQ(a.matmul(b, DType::int32).tolist<int>(), exact) << m << " " << n << " " << k;
    const Tensor c = some(3, {m, k}, DType::int8, -128), d = some(4, {k, n}, DType::uint8, 0);
    EXPECT_EQ(c.matmul(d, DType::int32).tolist<int>(), c.cast(DType::int64).matmul(d.cast(DType::int64)).tolist<int>());
    // Integers below 2^24 are exact in float32, in whatever order they are summed up.
    EXPECT_EQ(a.cast(DType::bfloat16).matmul(b.cast(DType::bfloat16), DType::float32).tolist<int>(), exact);
    EXPECT_EQ(a.cast(DType::bfloat16).realize().matmul(b.cast(DType::bfloat16).realize(), DType::float32).tolist<int>(), exact);
  }
}

TEST_P(TensorOn, AssignIsSeenThroughViews) {
  Tensor t = Tensor::arange(6).reshape({2, 3}).clone().realize();
  Tensor row = t[1];
  const Tensor twice = t * 2;  // a snapshot
  row.assign(row + 10);
  EXPECT_EQ(t.tolist<int>(), (std::vector<int>{0, 1, 2, 13, 14, 15}));
  EXPECT_EQ(twice.tolist<int>(), (std::vector<int>{0, 2, 4, 6, 8, 10}));
  t += 1;
  EXPECT_EQ(row.tolist<int>(), (std::vector<int>{14, 15, 16}));
}

TEST_P(TensorOn, ClonesOfOneValueShareNoMemory) {
  const Tensor zeros = Tensor::zeros({2});
  Tensor a = zeros.clone(), b = zeros.clone();
  Tensor::realize(std::vector<Tensor>{a, b});
  a += 1;
  EXPECT_EQ(a.tolist(), (Floats{1, 1}));
  EXPECT_EQ(b.tolist(), (Floats{0, 0}));
  const Tensor x({2.0, 3.0});
  (x.clone() * x).sum().backward();  // a clone has the gradient of its value
  EXPECT_EQ(x.grad().tolist(), (Floats{4, 6}));
}

TEST_P(TensorOn, AStoreRunsOnce) {
  Tensor t = Tensor({1.0, 2.0}).realize();
  t += 1;
  const Tensor sum = t.sum();
  EXPECT_EQ(sum.item(), 5);
  EXPECT_EQ(t.tolist(), (Floats{2, 3}));
  EXPECT_EQ(t.tolist(), (Floats{2, 3}));
  t *= 2;
  t += 1;
  EXPECT_EQ(t.tolist(), (Floats{5, 7}));
  EXPECT_EQ(sum.item(), 5);
}

TEST_P(TensorOn, ALazyReaderKeepsTheOldState) {
  Tensor a({1.0, 2.0, 3.0}), b({10.0, 20.0, 30.0});
  const Tensor before = a + b;
  a.assign(b);
  b.assign(before);  // needs the old a
  EXPECT_EQ(b.tolist(), (Floats{11, 22, 33}));
  EXPECT_EQ(a.tolist(), (Floats{10, 20, 30}));
  EXPECT_EQ(before.tolist(), (Floats{11, 22, 33}));
}

TEST_P(TensorOn, SelfOverlappingAssign) {
  Tensor t({1.0, 2.0, 3.0, 4.0});
  t.assign(t.flip(0));
  EXPECT_EQ(t.tolist(), (Floats{4, 3, 2, 1}));
  Tensor part = t[Slice{1, 4}];
  part.assign(t[Slice{0, 3}]);
  EXPECT_EQ(t.tolist(), (Floats{4, 4, 3, 2}));
}

TEST_P(TensorOn, EqualValuesAreDifferentTensors) {
  const Tensor x({1.0, 2.0});
  Tensor a = x + 1, b = x + 1, c = x + 1;
  const std::vector<Tensor> both{a, b, b};
  Tensor::realize(both);
  a += 10;
  EXPECT_EQ(b.tolist(), (Floats{2, 3}));
  EXPECT_EQ(c.tolist(), (Floats{2, 3}));
  c += 20;
  b += 30;
  EXPECT_EQ(a.tolist(), (Floats{12, 13}));
  EXPECT_EQ(b.tolist(), (Floats{32, 33}));
  EXPECT_EQ(c.tolist(), (Floats{22, 23}));
}

TEST_P(TensorOn, StoresThatNobodyAsksForDoNotPileUp) {
  Tensor count = Tensor({0}).realize();
  GlobalCounters::reset();
  for (int i = 0; i < 100; ++i) count += 1;
  EXPECT_GT(GlobalCounters::kernel_count.load(), 0u);
  EXPECT_EQ(count.item<int>(), 100);
}

TEST_P(TensorOn, SetItem) {
  Tensor t = Tensor::zeros({3, 3});
  t.set_item({1}, 5).set_item({Slice{}, 2}, Tensor({1.0, 2.0, 3.0}));
  EXPECT_EQ(t.tolist(), (Floats{0, 0, 1, 5, 5, 2, 0, 0, 3}));
  t.set_item({Tensor({0, 2}), 0}, -1);
  EXPECT_EQ(t.tolist(), (Floats{-1, 0, 1, 5, 5, 2, -1, 0, 3}));
}

TEST_P(TensorOn, Backward) {
  const Tensor x({{1.0, 2.0}, {3.0, 4.0}}), w({{1.0, 0.0}, {2.0, 1.0}});
  const Tensor hidden = x.matmul(w);
  hidden.square().sum().backward();
  EXPECT_EQ(w.grad().tolist(), (Floats{2 * (1 * 5 + 3 * 11), 2 * (1 * 2 + 3 * 4), 2 * (2 * 5 + 4 * 11), 2 * (2 * 2 + 4 * 4)}));
  EXPECT_EQ(hidden.grad().tolist(), (Floats{10, 4, 22, 8}));
  w.square().sum().backward();
  EXPECT_EQ(w.grad().tolist(), (Floats{76 + 2, 28, 108 + 4, 40 + 2}));
  EXPECT_FALSE(Tensor({1.0}).grad().defined());
}

TEST_P(TensorOn, GradientDescentFits) {
  Tensor w = Tensor::zeros({3, 1}).realize();
  Tensor::manual_seed(1);
  const Tensor x = Tensor::randn({64, 3}).realize(), y = x.matmul(Tensor({{1.0}, {-2.0}, {0.5}})).realize();
  for (int i = 0; i < 60; ++i) {
    w.set_grad({});
    (x.matmul(w) - y).square().mean().backward();
    w.assign((w - w.grad() * 0.2).detach()).realize();
  }
  const Floats fitted = w.tolist();
  EXPECT_NEAR(fitted[0], 1, 1e-3);
  EXPECT_NEAR(fitted[1], -2, 1e-3);
  EXPECT_NEAR(fitted[2], 0.5, 1e-3);
}

TEST_P(TensorOn, WinogradRoundsSomeFourTimesMore) {
  if (!takes(DType::float64)) GTEST_SKIP() << "it has no float64, which this measures errors with";
  Tensor::manual_seed(7);
  const Tensor x = Tensor::randn({2, 16, 14, 14}).realize(), w = Tensor::randn({16, 16, 3, 3}).realize();
  const auto convolved = [&](int wino, DType d) {
    const Context context{{.wino = wino}};
    return x.cast(d).conv2d(w.cast(d), {}, {.padding = {1}}).realize();
  };
  const Tensor exact = convolved(0, DType::float64);
  const auto error = [&](const Tensor& t) { return (t.cast(DType::float64) - exact).square().mean().sqrt().item(); };
  const double direct = error(convolved(0, DType::float32)), winograd = error(convolved(2, DType::float32));
  EXPECT_GT(winograd, direct);
  EXPECT_LT(winograd, 8 * direct);
}

TEST_P(TensorOn, SelectionFromWhatIsMeasuredFromAMaximum) {
  const Tensor x({0.0, 3.0, 1.0, 2.0}), w({1.0, 2.0, 3.0, 4.0}), chosen({2, 0, 3});
  const Tensor values = (x - x.max()).exp2() * w;
  const Tensor picked = (chosen.reshape({3, 1}) == Tensor::arange(4).to_int()).where(values, 0).sum(1);
  EXPECT_EQ(picked.tolist(), (Floats{0.75, 0.125, 2}));
}

// The loop over rows is bounded by an index that is loaded outside of it, and tiles of it are filled by vectors.
TEST_P(TensorOn, GathersOfGathers) {
  for (const int64_t rows : {9, 15, 16}) {
    const Tensor x = Tensor::arange(6 * rows * 6).reshape({6, rows, 6}).cast(DType::float32).realize();
    std::vector<int> reversed, left, right;
    for (int i = 0; i < rows; ++i) reversed.push_back(int(rows) - 1 - i);
    for (int i = 0; i < 2 * rows; ++i) {
      left.push_back(i / 2);
      right.push_back(std::min(i / 2 + 1, int(rows) - 1));
    }
    const Tensor part = x[{Slice{}, Tensor(reversed)}][{Tensor({2, -5, 0})}];
    const Floats got = (part[{Slice{}, Tensor(left)}] * 0.25F + part[{Slice{}, Tensor(right)}] * 0.75F).tolist();
    Floats wanted;
    for (const int64_t batch : {2, 1, 0})
      for (size_t i = 0; i < left.size(); ++i)
        for (int64_t column = 0; column < 6; ++column) {
          const auto at = [&](int row) { return float((batch * rows + reversed[size_t(row)]) * 6 + column); };
          wanted.push_back(at(left[i]) * 0.25F + at(right[i]) * 0.75F);
        }
    EXPECT_EQ(got, wanted) << rows;
  }
}

TEST_P(TensorOn, RandomNumbersFollowFromTheSeed) {
  Tensor::manual_seed(7);
  const Tensor a = Tensor::rand({5}), b = Tensor::rand({5});
  const Floats first = b.tolist();  // in any order of realizing
  EXPECT_NE(a.tolist(), first);
  Tensor::manual_seed(7);
  EXPECT_EQ(Tensor::rand({5}).tolist(), a.tolist());
  EXPECT_EQ(Tensor::rand({5}).tolist(), first);
  const Floats n = Tensor::randn({2000}).tolist();
  double sum = 0, squares = 0;
  for (float v : n) sum += v, squares += double(v) * v;
  EXPECT_NEAR(sum / 2000, 0, 0.1);
  EXPECT_NEAR(squares / 2000, 1, 0.1);
}

TEST_P(TensorOn, ReadingAValueKeepsTheWayOfGradients) {
  const Tensor x({1.0, 2.0}), loss = (x * x).sum();
  EXPECT_EQ(loss.item(), 5);
  EXPECT_EQ(loss.tolist(), (Floats{5}));
  loss.backward();
  EXPECT_EQ(x.grad().tolist(), (Floats{2, 4}));
  loss.realize();
  EXPECT_EQ(loss.gradient({x})[0].tolist(), (Floats{2, 4}));
}

TEST_P(TensorOn, MethodsThatChangeNothingGiveCopies) {
  const Tensor x = Tensor{1.0, 2.0}.realize();
  for (Tensor copy : {x.dropout(0.5), x.dropout(0), x.sequential({}), x.usum({}), x.uprod({})}) {
    copy += 10;
    EXPECT_EQ(copy.tolist(), (std::vector<float>{11, 12}));
  }
  EXPECT_EQ(x.tolist(), (std::vector<float>{1, 2}));
}

TEST_P(TensorOn, CopiesBetweenDevices) {
  const Tensor t({1.0, 2.0});
  EXPECT_EQ((t * 2).to("INTERP").device(), "INTERP");
  EXPECT_EQ(((t * 2).to("INTERP") + 1).to("CPU").tolist(), (Floats{3, 5}));
}

}  // namespace
}  // namespace tinygrad
