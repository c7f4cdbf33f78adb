#include "ops/random.h"

#include <tinygrad/errors.h>

#include <algorithm>

#include "dtype/scalar_ops.h"
#include "support.h"

namespace tinygrad::ops {
namespace {

class RandomTest : public OpsTest {
 protected:
  RandomState state(double low = 0, double high = 0) {
    return {.key = tensor({2}, {123, 42}, DType::uint32), .counter = tensor({2}, {low, high}, DType::uint32)};
  }
};

uint64_t block(uint64_t low, uint64_t high, uint64_t key) { return scalar::threefry2x32(high << 32 | low, key); }

/// The recipe, on numbers.
std::vector<uint32_t> words(uint64_t counter, size_t count) {
  const uint64_t key = block(counter & 0xffffffff, counter >> 32, uint64_t{42} << 32 | 123);
  const size_t half = (count + 1) / 2;
  std::vector<uint32_t> out(2 * half);
  for (size_t i = 0; i < half; ++i) {
    const uint64_t b = block(i, i + half, key);
    out[i] = uint32_t(b);
    out[half + i] = uint32_t(b >> 32);
  }
  out.resize(count);
  return out;
}

TEST_F(RandomTest, BitsFollowKeyAndCounter) {
  for (uint64_t counter : {uint64_t{0}, uint64_t{7}, (uint64_t{3} << 32) + 5}) {
    const std::vector<uint32_t> want = words(counter, 7);
    expect_values(random_bits(state(double(counter & 0xffffffff), double(counter >> 32)), 7), Values(want.begin(), want.end()));
  }
  expect_shape(random_bits(state(), 0), "(0,)");
}

TEST_F(RandomTest, UniformHasTheMantissaBits) {
  const std::vector<uint32_t> w = words(0, 6);
  Values want;
  for (uint32_t v : w) want.push_back(double(v >> 9) / (1 << 23));
  expect_values(rand(state(), {2, 3}), want);
  const Values doubles = values(rand(state(), {3}, DType::float64));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(doubles[i], double((uint64_t{w[2 * i + 1]} << 32 | w[2 * i]) >> 12) / double(uint64_t{1} << 52));
  const std::vector<uint32_t> two = words(0, 2);
  const Values halves = values(rand(state(), {3}, DType::float16));
  EXPECT_EQ(halves[0], double((two[0] & 0xffff) >> 6) / 1024);
  EXPECT_EQ(halves[1], double(two[0] >> 22) / 1024);
  EXPECT_EQ(values(rand(state(), {1}, DType::bfloat16))[0], double((words(0, 1)[0] & 0xffff) >> 9) / 128);
  EXPECT_EQ(random_words(3, DType::float16), 2);
  EXPECT_EQ(random_words(3, DType::float64), 6);
  EXPECT_THROW(rand(state(), {3}, DType::int32), DTypeError);
}

TEST_F(RandomTest, Moments) {
  auto moments = [&](const UOp& u) {
    const Values v = values(u);
    double mean = 0, square = 0;
    for (double x : v) mean += x / double(v.size());
    for (double x : v) square += (x - mean) * (x - mean) / double(v.size());
    return std::pair(mean, std::sqrt(square));
  };
  const auto [mean, std] = moments(randn(state(), {50, 80}));
  EXPECT_NEAR(mean, 0, 0.05);
  EXPECT_NEAR(std, 1, 0.05);
  const auto [mean2, std2] = moments(normal(state(), {50, 80}, 10, 2));
  EXPECT_NEAR(mean2, 10, 0.1);
  EXPECT_NEAR(std2, 2, 0.1);
  const Values u = values(uniform(state(), {1000}, -2, 3));
  EXPECT_GE(*std::min_element(u.begin(), u.end()), -2);
  EXPECT_LT(*std::max_element(u.begin(), u.end()), 3);
  const Values i = values(randint(state(), {1000}, -2, 3));
  EXPECT_EQ(*std::min_element(i.begin(), i.end()), -2);
  EXPECT_EQ(*std::max_element(i.begin(), i.end()), 2);
  const auto [mean3, std3] = moments(kaiming_uniform(state(), {100, 24}));
  EXPECT_NEAR(mean3, 0, 0.02);
  EXPECT_NEAR(std3, std::sqrt(6 / 1.0001 / 24 / 3), 0.01);
  EXPECT_THROW(uniform(state(), {2}, 1, 1), ValueError);
  EXPECT_THROW(normal(state(), {2}, 0, -1), ValueError);
}

TEST_F(RandomTest, Permutations) {
  Values p = values(randperm(state(), 20));
  EXPECT_FALSE(std::is_sorted(p.begin(), p.end()));
  std::sort(p.begin(), p.end());
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(p[i], double(i));
}

TEST_F(RandomTest, Multinomial) {
  const UOp weights = tensor({3}, {0, 1, 3});
  const Values drawn = values(multinomial(state(), weights, 400, true));
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 0), 0);
  EXPECT_NEAR(double(std::count(drawn.begin(), drawn.end(), 2)), 300, 40);
  Values all = values(multinomial(state(), tensor({4}, {1, 2, 3, 4}), 4));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (Values{0, 1, 2, 3}));
  expect_shape(multinomial(state(), counting({2, 5}), 3), "(2, 3)");
  EXPECT_THROW(multinomial(state(), weights, 4), ValueError);
}

TEST_F(RandomTest, Dropout) {
  const UOp x = tensor({1000}, Values(1000, 3.0), DType::float32);
  const Values y = values(dropout(state(), x, 0.25));
  const auto kept = std::count(y.begin(), y.end(), 4.0);
  EXPECT_EQ(kept + std::count(y.begin(), y.end(), 0.0), 1000);
  EXPECT_NEAR(double(kept), 750, 50);
  EXPECT_EQ(dropout(state(), x, 0), x);
  expect_values(dropout(state(), counting({2}), 1), {0, 0});
  EXPECT_THROW(dropout(state(), x, 1.5), ValueError);
}

}  // namespace
}  // namespace tinygrad::ops
