// Random numbers of one seed on every device that computes here: the same bits; normal ones within units of the last place.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/every_device.h"
#include "tensor/random.h"

namespace tinygrad {
namespace {

using Bytes = std::vector<std::byte>;

/// Beside CPU:LLVM.
class RandomOn : public test::EveryDevice {
 protected:
  template <class F>
  static auto on(const std::string& device, F&& draw) {
    const Context context{{.dev = device}};
    Tensor::manual_seed(11);
    return draw();
  }
  template <class F>
  static void expect_same_bits(const char* what, F&& draw) {
    const auto bytes = [&] { return draw().data(); };
    EXPECT_EQ(on(GetParam(), bytes), on("CPU:LLVM", bytes)) << what;
  }
};
INSTANTIATE_TEST_SUITE_P(All, RandomOn, testing::ValuesIn(test::every_device()), test::device_test_name);

TEST_P(RandomOn, BitsAreTheSame) {
  const auto bits = [] { return Tensor::random_bits(Tensor(std::vector<uint32_t>{1, 2}), Tensor(std::vector<uint32_t>{3, 4}), 1001); };
  expect_same_bits("random_bits", bits);
  expect_same_bits("rand of nothing", [] { return Tensor::rand({0}); });
  expect_same_bits("rand of an odd count", [] { return Tensor::rand({7, 143}); });
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64})
    if (takes(dtype)) expect_same_bits(std::string(repr(dtype)).c_str(), [&] { return Tensor::rand({500}, {.dtype = dtype}); });
  expect_same_bits("randint", [] { return Tensor::randint({500}, -7, 1000); });
  expect_same_bits("randint of bytes", [] { return Tensor::randint({500}, 0, 256, {.dtype = DType::uint8}); });
  expect_same_bits("randperm", [] { return Tensor::randperm(100); });
  expect_same_bits("the second draw", [] { return (Tensor::rand({5}), Tensor::rand({500})); });
  expect_same_bits("dropout", [] {
    const Context training{{.training = true}};
    return Tensor::ones({500}).dropout(0.25);
  });
}

TEST_P(RandomOn, NormalNumbersDifferByFewUnits) {
  const auto values = [] { return Tensor::randn({20000}).tolist(); };
  const std::vector<float> got = on(GetParam(), values), want = on("CPU:LLVM", values);
  // Of a radius below 6 times a cosine: an error of the angle counts by the radius, however small the cosine is.
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(std::abs(got[i] - want[i]), 16 * std::numeric_limits<float>::epsilon() * std::max(1.0f, std::abs(want[i]))) << i;
}

TEST(OwnSequence, BeginsWithItsSeedAndLeavesTheProcesssWhereItIs) {
  const auto draws = [] { return Tensor::rand({5}).tolist(); };
  Tensor::manual_seed(11);
  const std::vector<float> first = draws(), second = draws();
  Tensor::manual_seed(11);
  EXPECT_EQ(draws(), first);
  std::vector<float> own;
  for (int i = 0; i < 2; ++i) {
    const tensor::OwnSequence sequence(uint64_t{3} << 40 | 5);
    const std::vector<float> now = draws();
    if (i == 0) own = now;
    EXPECT_EQ(now, own);
    EXPECT_NE(draws(), own);
    const tensor::OwnSequence inner(6);
    EXPECT_NE(draws(), own);
  }
  EXPECT_EQ(draws(), second);
}

}  // namespace
}  // namespace tinygrad
