// Tensors of int64 and uint64 on devices that do without these dtypes give what devices with them do, each step of code generation checked.
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using Longs = std::vector<int64_t>;
constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max(), large = int64_t{1} << 32;

class EmulatedLong : public testing::TestWithParam<const char*> {
 protected:
  Context on_device_{{.dev = GetParam(), .emulated_dtypes = "int64", .spec = 3}};
};
INSTANTIATE_TEST_SUITE_P(All, EmulatedLong, testing::Values("CPU:LLVM", "CPU:CLANG", "INTERP"), [](const auto& p) {
  std::string name = p.param;
  std::erase(name, ':');
  return name;
});

Tensor longs(const Longs& values) { return Tensor(values, {int64_t(values.size())}); }

using Tensors = std::vector<Tensor>;
using Bytes = std::vector<std::byte>;

/// What programs give, realized together: few kernels.
std::vector<Bytes> contents(const std::function<Tensors()>& programs) {
  const Tensors results = programs();
  Tensor::realize(results);
  std::vector<Bytes> out;
  for (const Tensor& t : results) out.push_back(t.data());
  return out;
}

void expect_same(const std::function<Tensors()>& programs) {
  const std::vector<Bytes> got = contents(programs);
  const Context native{{.emulated_dtypes = ""}};
  const std::vector<Bytes> want = contents(programs);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i], want[i]) << "result " << i;
}

const Longs edges = {0,
                     1,
                     -1,
                     2,
                     -2,
                     7,
                     -13,
                     1000,
                     least,
                     least + 1,
                     most,
                     most - 1,
                     large,
                     large - 1,
                     large + 1,
                     -large,
                     -large - 1,
                     INT32_MAX,
                     INT32_MIN,
                     int64_t{1} << 31,
                     0x123456789abcdef,
                     -0x7edcba987654321,
                     (int64_t{1} << 53) + 1,
                     -(int64_t{1} << 40)};

/// The edges against each other.
std::pair<Tensor, Tensor> pairs() {
  Longs a, b;
  for (int64_t x : edges)
    for (int64_t y : edges) a.push_back(x), b.push_back(y);
  return {longs(a), longs(b)};
}

TEST_P(EmulatedLong, Arithmetic) {
  const auto programs = [](const Tensor& x, const Tensor& y) -> Tensors {
    return {x + y * 3 - (x ^ y),
            x * y,
            (x & y).maximum(x | y) + x.minimum(y) - (-x),
            x.div(y, Rounding::floor),
            x.div(y, Rounding::trunc),
            x % y,
            x.div(1000000007, Rounding::floor) * 2 + x % 60,
            x.lshift(y & 63) ^ x.rshift(y & 63) ^ x.rshift(5) ^ x.lshift(40),
            ((x < y).where(x, y) + (x.eq(y)).where(1, 5)) * (x.ne(y)).cast(DType::int64)};
  };
  const auto [a, b] = pairs();
  for (DType d : {DType::int64, DType::uint64}) expect_same([&, &x = a, &y = b] { return programs(x.cast(d), y.cast(d)); });
}

TEST_P(EmulatedLong, Casts) {
  const Tensor a = longs(edges);
  for (DType d : {DType::int64, DType::uint64}) {
    expect_same([&] {
      Tensors out;
      for (DType to : {DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::uint32, DType::int64,
                       DType::uint64, DType::fp8e4m3, DType::fp8e5m2, DType::fp8e4m3fnuz, DType::fp8e5m2fnuz, DType::float16,
                       DType::bfloat16, DType::float32, DType::float64})
        out.push_back(a.cast(d).cast(to)), out.push_back(a.cast(to).cast(d));
      out.push_back(a.cast(d).bitcast(DType::float64));
      out.push_back((a.cast(DType::float32) * 0.75 + 0.5).cast(d));
      return out;
    });
    const Tensor doubles = a.cast(DType::float64).realize();
    expect_same([&]() -> Tensors { return {doubles.bitcast(d) + 1}; });
  }
}

TEST_P(EmulatedLong, SumsGoBeyond32Bits) {
  const Tensor a = longs({large - 1, 5, most, -7, large, 9, 1, -3});
  EXPECT_EQ(a.sum().item<int64_t>(), int64_t(uint64_t(2 * large) + uint64_t(most) + 4));
  EXPECT_EQ(Tensor::full({1000, 7}, 5000000000, {.dtype = DType::int64}).sum(0).tolist<int64_t>(), Longs(7, 5000000000000));
  EXPECT_EQ(a.max().item<int64_t>(), most);
  EXPECT_EQ(a.min().item<int64_t>(), -7);
  EXPECT_EQ(longs({3, large, 5}).prod().item<int64_t>(), 15 * large);
  EXPECT_EQ(Tensor::full({2}, large, {.dtype = DType::int64}).prod().item<int64_t>(), 0);
  EXPECT_EQ(Tensor::full({16, 33}, large + 1, {.dtype = DType::uint64}).sum(1).tolist<uint64_t>(),
            std::vector<uint64_t>(16, 33 * (large + 1)));
  EXPECT_EQ(a.argmax().item<int>(), 2);
}

TEST_P(EmulatedLong, CountingAndScanning) {
  EXPECT_EQ((Tensor::arange(40, {.dtype = DType::int64}) * large + 1).sum().item<int64_t>(), 780 * large + 40);
  Longs sums;
  for (int64_t i = 0, sum = 0; i < 60; ++i) sums.push_back(sum += i * i * 100000000);
  const Tensor i = Tensor::arange(60, {.dtype = DType::int64});
  EXPECT_EQ((i * i * 100000000).cumsum().tolist<int64_t>(), sums);
}

TEST_P(EmulatedLong, IndicesOf64Bits) {
  const Tensor table = Tensor::arange(20).cast(DType::float32).reshape({5, 4}).clone().realize();
  const Tensor rows = longs({4, 0, 3, 3, -1}).realize();
  EXPECT_EQ(table[rows].sum(1).tolist<int>(), (std::vector<int>{70, 6, 54, 54, 70}));
  EXPECT_EQ(table.gather(0, longs({1, 2, 0, 4}).reshape({1, 4})).tolist<int>(), (std::vector<int>{4, 9, 2, 19}));
  // An index far outside is outside, whatever its low word says.
  const Tensor far = longs({large + 1, 1, -large, 2});
  expect_same([&]() -> Tensors { return {table[far]}; });
  const Tensor values = longs({large, -large, 3, 4});
  EXPECT_EQ(values[longs({2, 0, 1})].tolist<int64_t>(), (Longs{3, large, -large}));
}

TEST_P(EmulatedLong, RandomNumbersAreTheSame) {
  expect_same([]() -> Tensors {
    Tensor::manual_seed(42);
    return {Tensor::rand({1000}), Tensor::randn({77}), Tensor::randint({100}, -5, 1000)};
  });
}

TEST_P(EmulatedLong, MemoryIsThatOfTheDType) {
  Tensor a = longs({1, -1, large, least}).realize();
  const Bytes before = a.data();
  a += large;
  a[1].assign(longs({7}).reshape({}));
  EXPECT_EQ(a.tolist<int64_t>(), (Longs{large + 1, 7, 2 * large, least + large}));
  EXPECT_EQ(before.size(), a.data().size());
  a *= large;  // the low words do not depend on those before
  EXPECT_EQ(a.tolist<int64_t>(), (Longs{large, 7 * large, 0, 0}));
  EXPECT_EQ(a.flip({0}).pad({{1, 0}}).tolist<int64_t>(), (Longs{0, 0, 0, 7 * large, large}));
}

TEST_P(EmulatedLong, FunctionsThatUseWideProducts) {
  std::vector<double> x;
  for (double v = 1e-3; v < 1e37; v *= 37.7) x.push_back(v), x.push_back(-v);
  const Context by_arithmetic{{.transcendental = 2}};
  expect_same([&]() -> Tensors {
    const Tensor t(x, {int64_t(x.size())});
    return {t.sin(), t.cast(DType::float32).sin()};
  });
}

TEST_P(EmulatedLong, ReplaysOfJittedFunctions) {
  const auto step = jit([](const Tensor& x) { return (x * large + x.div(3, Rounding::floor)).realize(); });
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(step(longs({i, -i, large * i}).realize()).tolist<int64_t>(),
              (Longs{i * large + i / 3, -i * large - (i + 2) / 3, large * i / 3}));
}

TEST_P(EmulatedLong, OtherNamesAreRefused) {
  for (const char* name : {"int32", "float32", "bool"}) {
    const Context wrong{{.emulated_dtypes = name}};
    EXPECT_THROW((longs({1, 2}) + 1).realize(), ValueError) << name;
  }
}

}  // namespace
}  // namespace tinygrad
