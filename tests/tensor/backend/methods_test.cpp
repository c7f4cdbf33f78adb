// Methods of Tensor that hand their arguments on: each is reached, in the order its parameters say. The functions behind them have tests of
// their own (tests/ops).
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int>;

class MethodsOn : public test::EveryDevice {
 protected:
  static void expect_near(const Tensor& got, const Floats& want, float bound = 2e-6f) {
    const Floats values = got.tolist();
    ASSERT_EQ(values.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], bound) << i;
  }
  static Ints ints(const Tensor& t) { return t.tolist<int>(); }

  Tensor m_{Tensor({{1.0, 5.0, 3.0}, {4.0, 2.0, 6.0}})};
  Tensor v_{Tensor({3, 1, 2})};
};
INSTANTIATE_TEST_SUITE_P(All, MethodsOn, testing::ValuesIn(test::quick_devices()), test::device_test_name);

TEST_P(MethodsOn, Created) {
  EXPECT_EQ(m_.constant(2).dtype(), DType::float32);
  EXPECT_EQ(m_.constant(2).shape(), Sizes{});
  expect_near(m_.const_like(2), {2, 2, 2, 2, 2, 2});
  EXPECT_EQ(m_.empty_like({.dtype = DType::int8}).dtype(), DType::int8);
  EXPECT_EQ(m_.empty_like().shape(), (Sizes{2, 3}));
  EXPECT_EQ(Tensor::invalids({4}).shape(), Sizes{4});
  EXPECT_EQ(m_.to_double().dtype(), DType::float64);
  EXPECT_EQ(m_.to_long().dtype(), DType::int64);
  EXPECT_EQ(m_.to_short().dtype(), DType::int16);
}

TEST_P(MethodsOn, MemoryIsGivenBeforeItIsComputed) {
  const Tensor square = m_ * m_, sum = square.sum(0), more = sum + 1;
  const uint64_t before = GlobalCounters::kernel_count;
  Tensor::callify(std::vector<Tensor>{sum, square});
  EXPECT_EQ(GlobalCounters::kernel_count, before);
  expect_near(more, {18, 30, 46});
  const uint64_t computed = GlobalCounters::kernel_count;
  expect_near(square, {1, 25, 9, 16, 4, 36});
  expect_near(sum, {17, 29, 45});
  EXPECT_EQ(GlobalCounters::kernel_count, computed);  // both have been stored on the way
  Tensor w({2.0, 3.0});
  const Tensor y = w * w;
  Tensor::callify(std::vector<Tensor>{y, w});
  expect_near(y.sum().gradient({w})[0], {4, 6});
}

TEST_P(MethodsOn, BytesOfAUrl) {
  const std::string path = testing::TempDir() + "tg_from_url_" + std::to_string(getpid());
  std::ofstream(path) << "abc";
  const Tensor bytes = Tensor::from_url(path);
  EXPECT_EQ(bytes.dtype(), DType::uint8);
  EXPECT_EQ(ints(bytes + 1), (Ints{'b', 'c', 'd'}));
  EXPECT_THROW(Tensor::from_url(path, false, {.dtype = DType::float32}), DTypeError);
  EXPECT_THROW(Tensor::from_url(path + ".absent"), IoError);
  std::filesystem::remove(path);
}

TEST_P(MethodsOn, Ranges) {
  EXPECT_EQ(ints(Tensor::arange(3)), (Ints{0, 1, 2}));
  EXPECT_EQ(ints(Tensor::arange(1, 4)), (Ints{1, 2, 3}));
  EXPECT_EQ(ints(Tensor::arange(5, int64_t{0}, -2)), (Ints{5, 3, 1}));
  EXPECT_EQ(Tensor::arange(0, 4, 2, {.dtype = DType::float32}).dtype(), DType::float32);
  EXPECT_EQ(Tensor::arange(size_t{2}, 3).dtype(), DType::int32);
  expect_near(Tensor::arange(0, 1, 0.25), {0, 0.25, 0.5, 0.75});
}

TEST_P(MethodsOn, AxesTooLongToOrderIndices) {
  const Tensor x = Tensor::zeros({int64_t{1} << 31}), at = Tensor::zeros({100}).to_int();
  EXPECT_THROW(x.scatter(0, at, Tensor::ones({100})), ValueError);
}

TEST_P(MethodsOn, Drawn) {
  const Tensor key(std::vector<uint32_t>{1, 2}), counter(std::vector<uint32_t>{0, 0});
  const Tensor bits = Tensor::random_bits(key, counter, 4);
  EXPECT_EQ(bits.dtype(), DType::uint32);
  EXPECT_EQ(bits.tolist<uint32_t>(), Tensor::random_bits(key, counter, 4).tolist<uint32_t>());
  EXPECT_NE(bits.tolist<uint32_t>(), Tensor::random_bits(key + 1, counter, 4).tolist<uint32_t>());
  Tensor::manual_seed(3);
  for (int i : ints(Tensor({0.0, 1.0, 0.0, 3.0}).multinomial(20, true))) EXPECT_TRUE(i == 1 || i == 3) << i;
  Ints all = ints(Tensor({1.0, 1.0, 1.0}).multinomial(3));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (Ints{0, 1, 2}));
  EXPECT_EQ(Tensor({{1.0, 1.0}, {0.0, 1.0}, {1.0, 0.0}}).multinomial().shape(), (Sizes{3, 1}));
}

TEST_P(MethodsOn, Elementwise) {
  EXPECT_EQ(ints(Tensor({-7, 7}).fmod(3)), (Ints{-1, 1}));
  expect_near(Tensor({1.0, -2.0}).copysign(Tensor({-0.0, 3.0})), {-1, 2});
  expect_near(Tensor({0.0, 1000.0}).logaddexp(Tensor({0.0, 1000.0})), {float(std::log(2.0)), 1000.6931f}, 1e-3f);
  expect_near(Tensor({100.0}).log10(), {2});
  const Tensor half({0.5});
  expect_near(half.asin(), {float(std::asin(0.5))});
  expect_near(half.acos(), {float(std::acos(0.5))});
  expect_near(half.atan(), {float(std::atan(0.5))});
  expect_near(half.asinh(), {float(std::asinh(0.5))});
  expect_near((half + 1).acosh(), {float(std::acosh(1.5))});
  expect_near(half.atanh(), {float(std::atanh(0.5))});
  expect_near(Tensor({-9.0, 0.0, 9.0}).hardsigmoid(0.25, 0.25), {0, 0.25, 1});
  expect_near(Tensor({-9.0, 0.5, 9.0}).hardtanh(-2, 3), {-2, 0.5, 3});
  expect_near(Tensor({-1.0, 1.0}).celu(2), {float(2 * std::expm1(-0.5)), 1});
  expect_near(Tensor({-1.0, 1.0}).selu(), {float(1.0507 * 1.67326 * std::expm1(-1.0)), 1.0507f});
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Tensor({infinity, -infinity}).isinf({.detect_negative = false}).tolist<bool>(), (std::vector<bool>{true, false}));
  // Threefry-2x32-20 of zeros, as published with Random123: 0x6b200159, 0x99ba4efe.
  const Tensor zero = Tensor::zeros({1}, {.dtype = DType::uint64});
  EXPECT_EQ(zero.threefry(zero).tolist<uint64_t>()[0], 0x99ba4efe6b200159u);
}

TEST_P(MethodsOn, ChoicesOfSingleHalves) {
  const Context on{{.dev = GetParam()}};
  const Tensor x = Tensor({-1.0, 2.0, 0.5}, {.dtype = DType::float16}).realize();
  EXPECT_EQ(x.relu().tolist(), (std::vector<float>{0, 2, 0.5}));
  EXPECT_EQ((x < 1).where(x, 1).tolist(), (std::vector<float>{-1, 1, 0.5}));
}

TEST_P(MethodsOn, PowersOfIntegers) {
  const Context on{{.dev = GetParam()}};
  const Tensor x(std::vector<int32_t>{3, -2, -1, 1, 0, 7, -3, 10}), e(std::vector<int32_t>{4, 5, -3, -9, 0, 40, -1, 11});
  EXPECT_EQ(x.pow(e).tolist<int32_t>(), (std::vector<int32_t>{81, -32, -1, 1, 1, int32_t(0xf78771c1u), 0, int32_t(1215752192)}));
  EXPECT_EQ((2 + 0 * e).pow(e).tolist<int32_t>(), (std::vector<int32_t>{16, 32, 0, 0, 1, 0, 0, 2048}));
  const Tensor u(std::vector<uint64_t>{3, 2, 0}), n(std::vector<uint64_t>{40, 63, 0});
  EXPECT_EQ(u.pow(n).tolist<uint64_t>(), (std::vector<uint64_t>{12157665459056928801ull, 1ull << 63, 1}));
  EXPECT_EQ(Tensor(std::vector<int8_t>{2, -2}).pow(Tensor(std::vector<int8_t>{7, 3})).tolist<int8_t>(), (std::vector<int8_t>{-128, -8}));
}

TEST_P(MethodsOn, Views) {
  expect_near(m_.shrink_to({-1, 2}), {1, 5, 4, 2});
  expect_near(m_.pad_to({3, 3}, 9), {1, 5, 3, 4, 2, 6, 9, 9, 9});
  EXPECT_EQ(ints(v_.repeat_interleave(2)), (Ints{3, 3, 1, 1, 2, 2}));
  expect_near(m_.repeat_interleave(2, 0), {1, 5, 3, 1, 5, 3, 4, 2, 6, 4, 2, 6});
  EXPECT_EQ(ints(v_.roll({1})), (Ints{2, 3, 1}));
  expect_near(m_.roll({1, -1}, {0, 1}), {2, 6, 4, 5, 3, 1});
  EXPECT_EQ(ints(v_.unfold(0, 2, 1)), (Ints{3, 1, 1, 2}));
  EXPECT_EQ(ints(v_.diag()), (Ints{3, 0, 0, 0, 1, 0, 0, 0, 2}));
  expect_near(m_.diagonal(1), {5, 6});
  const auto grid = Tensor::meshgrid({Tensor({1, 2}), Tensor({7, 8, 9})});
  EXPECT_EQ(ints(grid[0]), (Ints{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(ints(grid[1]), (Ints{7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(Tensor::meshgrid({Tensor({1, 2}), Tensor({7, 8, 9})}, true)[0].shape(), (Sizes{3, 2}));
  const auto parts = m_.split(Sizes{1, 2}, 1);
  expect_near(parts[1], {5, 3, 2, 6});
  expect_near(m_.rearrange("a (b c) -> c a b", {{"b", 3}}), {1, 5, 3, 4, 2, 6});
}

TEST_P(MethodsOn, Indexed) {
  const Tensor mask = m_ > 2;
  expect_near(m_.masked_select(mask), {5, 3, 4, 6});
  expect_near(m_.masked_select(mask, 6, -1), {5, 3, 4, 6, -1, -1});
  expect_near(m_[mask], {5, 3, 4, 6});
  expect_near((m_[{Slice{}, Tensor({true, false, true})}]), {1, 3, 4, 6});
  expect_near((m_[{Ellipsis{}, Tensor({false, true, false}), NewAxis{}}]), {5, 2});
  EXPECT_EQ(ints(mask.nonzero()), (Ints{0, 1, 0, 2, 1, 0, 1, 2}));
  EXPECT_EQ(ints(v_.nonzero(4, -1)), (Ints{0, 1, 2, -1}));
  EXPECT_EQ(m_[m_ > 9].shape(), Sizes{0});
  EXPECT_THROW((m_[{Slice{}, Tensor({true, false})}]), IndexError);
  EXPECT_THROW((m_[{Tensor(true)}]), IndexError);

  Tensor written = m_.clone();
  written.set_item({mask}, 0);
  expect_near(written, {1, 0, 0, 0, 2, 0});
  written.set_item({mask}, Tensor({7.0, 8.0, 9.0, 10.0}));
  expect_near(written, {1, 7, 8, 9, 2, 10});
  written.set_item({Slice{}, Tensor({true, false, true})}, -1);
  expect_near(written, {-1, 7, -1, -1, 2, -1});
  EXPECT_THROW(written.set_item({Tensor({{true, false}})}, 1), IndexError);
  EXPECT_THROW(written.set_item({mask}, Tensor({1.0, 2.0})), ShapeError);
  expect_near(written, {-1, 7, -1, -1, 2, -1});

  const Tensor zeros = Tensor::zeros({3}), at({2, 0, 2});
  expect_near(zeros.scatter(0, at, Tensor({1.0, 2.0, 3.0})), {2, 0, 3});
  expect_near(zeros.scatter(0, at, 5), {5, 0, 5});
  expect_near(zeros.scatter_reduce(0, at, Tensor({1.0, 2.0, 3.0}), ScatterMode::sum), {2, 0, 4});
  expect_near((zeros + 1).scatter_reduce(0, at, Tensor({1.0, 2.0, 3.0}), ScatterMode::prod, false), {2, 1, 3});
}

TEST_P(MethodsOn, ReducedAndSorted) {
  const auto [variance, mean] = m_.var_mean(1, {.correction = 0});
  expect_near(variance, {float(8.0 / 3), float(8.0 / 3)});
  expect_near(mean, {3, 4});
  expect_near(m_.std_mean({}, {.keepdim = true}).first, {float(std::sqrt(3.5))});
  expect_near(m_.softmin(1), (-m_).softmax(1).tolist());
  EXPECT_EQ(m_.half().softmax(-1, DType::float32).dtype(), DType::float32);
  expect_near(Tensor({{3.0, 4.0}}).normalize(), {0.6f, 0.8f});
  expect_near(m_.cumprod(1), {1, 5, 15, 4, 8, 48});
  EXPECT_EQ(ints(m_.cummax(1).indices), (Ints{0, 1, 1, 0, 0, 2}));
  expect_near(m_.cummin(1).values, {1, 1, 1, 4, 2, 2});
  expect_near(Tensor({0.0, 0.0}).logcumsumexp(), {0, float(std::log(2.0))});
  expect_near(m_.sort(1, true).values, {5, 3, 1, 6, 4, 2});
  EXPECT_EQ(ints(v_.argsort()), (Ints{1, 2, 0}));
  EXPECT_EQ(ints(v_.topk(2).values), (Ints{3, 2}));
  EXPECT_EQ(ints(v_.topk(1, 0, false).indices), (Ints{1}));
}

TEST_P(MethodsOn, ProductsPoolsAndLosses) {
  expect_near(Tensor::einsum("ij,kj->ik", {m_, m_}), {35, 32, 32, 56});
  expect_near(Tensor({1.0, 2.0}).sequential({[](const Tensor& x) { return x + 1; }, [](const Tensor& x) { return x * 2; }}), {4, 6});
  const Tensor image = Tensor::arange(16).reshape({1, 1, 4, 4}).to_float();
  const auto [values, places] = image.max_pool2d_with_indices();
  expect_near(values, {5, 7, 13, 15});
  EXPECT_EQ(ints(places), (Ints{5, 7, 13, 15}));
  expect_near(values.max_unpool2d(places), {0, 0, 0, 0, 0, 5, 0, 7, 0, 0, 0, 0, 0, 13, 0, 15});
  EXPECT_EQ(values.max_unpool2d(places, {}, {1, 1, 5, 5}).shape(), (Sizes{1, 1, 5, 5}));
  expect_near(Tensor({{1.0, 2.0}}).interpolate({4}), {1, 1.25f, 1.75f, 2});
  expect_near(Tensor({{1.0, 4.0}}).interpolate({4}, {.align_corners = true}), {1, 2, 3, 4});
  expect_near(Tensor({{1.0, 2.0}}).interpolate({2, 2}, {.mode = Interpolation::nearest}), {1, 2, 1, 2});
  const Tensor logs = Tensor({{0.25, 0.75}, {0.5, 0.5}}).log(), y({1, 0});
  const auto a = float(-std::log(0.75)), b = float(-std::log(0.5));
  expect_near(logs.nll_loss(y), {(a + b) / 2});
  expect_near(logs.nll_loss(y, Tensor({1.0, 3.0})), {(3 * a + b) / 4});
  expect_near(logs.nll_loss(y, {}, {.ignore_index = 1, .reduction = Reduction::none}), {0, b});
  const Tensor logit({0.0}), one({1.0});
  expect_near(logit.binary_crossentropy_logits(one, Reduction::mean, Tensor({3.0})), {float(3 * std::log(2.0))});
}

TEST_P(MethodsOn, WrongArguments) {
  EXPECT_THROW(Tensor::meshgrid({m_, v_}), ShapeError);
  EXPECT_THROW(m_.split(Sizes{-1, 4}, 1), ValueError);
  EXPECT_THROW(m_.repeat_interleave(-1), ValueError);
  EXPECT_THROW(m_.masked_select(m_ > 2, -3), ValueError);
  EXPECT_THROW(m_.masked_select(m_), DTypeError);
  EXPECT_THROW(m_.nonzero(-1), ValueError);
  EXPECT_THROW(v_.threefry(v_), DTypeError);
  const Tensor words(std::vector<uint32_t>{1, 2});
  EXPECT_THROW(Tensor::random_bits(words, words, -4), ValueError);
  EXPECT_THROW(m_.multinomial(-5, true), ValueError);
  EXPECT_THROW(m_.softmax(-1, DType::int32), DTypeError);
  EXPECT_THROW(m_.nll_loss(Tensor({0, 1}), Tensor({1.0})), ShapeError);
  EXPECT_THROW(m_.sequential({std::function<Tensor(const Tensor&)>{}}), ValueError);
  EXPECT_THROW(m_.interpolate({0}), ValueError);
  EXPECT_THROW(Tensor().sort(), ValueError);
  const auto picked = jit([](const Tensor& x) { return x[x > 2].sum().realize(); });  // how many are picked is read back
  EXPECT_THROW(for (int i = 0; i < 3; ++i) picked((m_ + i).realize()), JitError);
}

TEST_P(MethodsOn, ExponentialsOfAnySize) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x{-inf, -3e38f, -1e30f, -1e15f, -2e7f, -1.2e7f, -8.4e6f, -5e6f, -3e6f, -200,  -100,
                       -80,  -0.0f,  0,      80,     88,    89,      3e6f,    5e6f,  1e30f, 3e38f, inf};
  while (x.size() < 64) x.push_back(float(x.size()) / 7);
  const std::vector<float> got = Tensor(x).exp().tolist();
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp(double(x[i]));
    if (want > std::numeric_limits<float>::max())
      EXPECT_EQ(got[i], inf) << x[i];
    else
      EXPECT_NEAR(got[i], want, want * 1e-5 + 1e-37) << x[i];
  }
  EXPECT_TRUE(std::isnan(Tensor({std::nanf(""), 1.0f}).exp().tolist()[0]));
}

TEST_P(MethodsOn, Fp8OfOneZero) {
  const float nan = std::nanf("");
  const Tensor x({1000.0, -1000.0, 248.0, 247.0, -247.0, 0.3, -0x1p-10, 0x1p-12, 0.0, -0.0, double(INFINITY), double(nan)});
  const auto expect_same = [](const Tensor& got, const Floats& want) {
    const Floats values = got.cast(DType::float32).tolist();
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(values[i]) : values[i] == want[i] && !(values[i] == 0 && std::signbit(values[i])))
          << i << ": " << values[i] << ", expected " << want[i];
  };
  const Tensor e4m3 = x.cast(dtypes::fp8e4m3fnuz), e5m2 = x.cast(dtypes::fp8e5m2fnuz);
  expect_same(e4m3, {nan, nan, nan, 240, -240, 0.3125, -0x1p-10, 0, 0, 0, nan, nan});
  expect_same(x.cast(dtypes::fp8e4m3fnuz, true), {240, -240, 240, 240, -240, 0.3125, -0x1p-10, 0, 0, 0, 240, nan});
  expect_same(e5m2, {1024, -1024, 256, 256, -256, 0.3125, -0x1p-10, 0x1p-12, 0, 0, nan, nan});
  expect_same(-e4m3, {nan, nan, nan, -240, 240, -0.3125, 0x1p-10, 0, 0, 0, nan, nan});
  EXPECT_EQ(e5m2.bitcast(DType::uint8).tolist<int>()[9], 0);
  EXPECT_EQ((e4m3 + e5m2).dtype(), DType::float16);
  EXPECT_EQ((e4m3 * 2).dtype(), DType::fp8e4m3fnuz);
  EXPECT_EQ(repr(parse_dtype("fp8e4m3fnuz")), "dtypes.fp8e4m3fnuz");
}

TEST_P(MethodsOn, RandomIntegersAreInt32) {
  const Context wide{{.default_int = "int64"}};
  EXPECT_EQ(Tensor::randint({3}).dtype(), DType::int32);
  EXPECT_EQ(Tensor::randperm(3).dtype(), DType::int32);
  EXPECT_EQ(Tensor::randint({3}, 0, int64_t{1} << 40, {.dtype = DType::int64}).dtype(), DType::int64);
}

TEST_P(MethodsOn, DecomposedAndHashed) {
  const auto [q, r] = m_.qr();
  expect_near(q.matmul(r), m_.tolist(), 1e-5f);
  const auto [u, s, vt] = m_.svd(false);
  expect_near((u * s.unsqueeze(0)).matmul(vt), m_.tolist(), 1e-5f);
  EXPECT_EQ(m_.svd().vt.shape(), (Sizes{3, 3}));
  expect_near(Tensor::eye(2).newton_schulz(1, {1.0, 0.0}), {float(std::sqrt(0.5)), 0, 0, float(std::sqrt(0.5))}, 1e-5f);
  const std::vector<uint8_t> digest = Tensor(std::vector<uint8_t>{'a', 'b', 'c'}).keccak("sha3_256").tolist<uint8_t>();
  EXPECT_EQ(digest[0], 0x3a);  // FIPS 202: 3a985da7...
  EXPECT_EQ(digest[31], 0x32);
  EXPECT_EQ(Tensor(std::vector<uint8_t>{'a', 'b', 'c'}).keccak(136, 6).tolist<uint8_t>(), digest);
  EXPECT_THROW(m_.keccak(137, 6), ValueError);
  EXPECT_THROW(m_.keccak("md5"), ValueError);
}

}  // namespace
}  // namespace tinygrad
