// Sums of 10^8 and 10^9 floats: an error of at most 1e-6 of the sum of the magnitudes.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

#include <cmath>
#include <vector>

namespace tinygrad {
namespace {

/// (i % 1000) / 1000 for i < n, which needs no memory, and the exact sum of what float32 makes of it.
Tensor fractions(int64_t n) { return (Tensor::arange(n) % 1000).cast(DType::float32) * 0.001; }
double exact_sum(int64_t n) {
  double cycle = 0, rest = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    cycle += double(float(i) * 0.001f);
    if (i < n % 1000) rest += double(float(i) * 0.001f);
  }
  return double(n / 1000) * cycle + rest;
}

TEST(BillionTerms, ComputedOnes) {
  for (const int64_t n : {int64_t{100'000'007}, int64_t{1'000'000'000}}) {
    EXPECT_NEAR(fractions(n).sum().item() / exact_sum(n), 1, 1e-6) << n;
    EXPECT_NEAR(fractions(n).mean().item() / (exact_sum(n) / double(n)), 1, 1e-6) << n;
  }
}

TEST(BillionTerms, OfOneNumberInMemory) {
  constexpr int64_t n = 300'000'000;
  const Tensor x = Tensor::full({n}, 0.1).contiguous().realize();
  EXPECT_NEAR(x.sum().item() / (double(n) * double(0.1f)), 1, 1e-6);
  const Tensor rows = x.reshape({n / 100, 100});
  EXPECT_NEAR(rows.sum(0).max().item() / (double(n / 100) * double(0.1f)), 1, 1e-6);
  EXPECT_NEAR(rows.transpose().reshape({100, n / 100}).sum(1).min().item() / (double(n / 100) * double(0.1f)), 1, 1e-6);
}

}  // namespace
}  // namespace tinygrad
