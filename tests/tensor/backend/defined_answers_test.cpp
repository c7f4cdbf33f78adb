// Gradients and values at places where a formula alone would give NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include <tinygrad/errors.h>
#include <tinygrad/jit.h>
#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

class DefinedOn : public test::EveryDevice {
 protected:
  static Floats slope(const Tensor& y, const Tensor& x) { return y.sum().gradient({x})[0].tolist(); }
};
INSTANTIATE_TEST_SUITE_P(All, DefinedOn, testing::ValuesIn(test::quick_devices()), test::device_test_name);

TEST_P(DefinedOn, GradientsWhereActivationsAreFlat) {
  const Tensor x({-3e38, -100.0, -89.0, -45.0, -10.2, 90.0, 3e38});
  const Floats flat{0, 0, 0, 0, 0, 1, 1};
  for (const Tensor& y : {x.gelu(), x.gelu(GeluForm::erf), x.silu(), x.quick_gelu(), x.mish(), x.elu(), x.celu(), x.softplus()}) {
    const Floats got = slope(y, x);
    for (size_t i = 0; i < flat.size(); ++i) EXPECT_NEAR(got[i], flat[i], 4e-4) << i;
  }
  for (const Tensor& y : {x.tanh(), x.sigmoid(), x.erf()})
    for (const float g : slope(y, x)) EXPECT_NEAR(g, 0, 4e-5);
  const Tensor half = Tensor({-11.1, -60.0}, {.dtype = DType::float16});
  for (const Tensor& y : {half.sigmoid(), half.silu(), half.quick_gelu()})
    for (const float g : slope(y, half)) EXPECT_NEAR(g, 0, 2e-4);
}

TEST_P(DefinedOn, GradientsAtZero) {
  const Tensor x({0.0});
  EXPECT_NEAR(slope(x.erf(), x)[0], 1.128379f, 1e-6);
  for (const Tensor& y : {x.atan(), x.asin(), x.asinh(), x.elu(), x.celu(), x.sinh(), x.tanh(), x.tan(), x.atanh()}) {
    EXPECT_EQ(slope(y, x), Floats{1});
    EXPECT_EQ(y.item(), 0);
  }
}

TEST_P(DefinedOn, NormsOfZeros) {
  const Tensor zeros = Tensor::zeros({2, 3}).clone().realize();
  for (const double p : {1.0, 2.0, 3.0})
    for (const float g : slope(zeros.normalize(p), zeros)) EXPECT_TRUE(std::isfinite(g)) << p;
  const Tensor same = Tensor::full({2, 3}, 5.0).clone().realize();
  EXPECT_EQ(same.std().item(), 0);
  EXPECT_EQ(slope(same.std(), same), Floats(6, 0));
  EXPECT_EQ(slope(same.std({1}), same), Floats(6, 0));
  EXPECT_EQ(slope(same.std({1}).sum().gradient({same})[0] * Tensor({1.f, 2.f, 3.f}), same), Floats(6, 0)) << "second order";
}

TEST_P(DefinedOn, RowsOfAttentionWithoutAKey) {
  const Tensor q = Tensor({{1.0, 2.0}, {3.0, 4.0}}).reshape({1, 2, 2}).realize(),
               v = Tensor({{5.0, 6.0}, {7.0, 8.0}}).reshape({1, 2, 2}).realize();
  const double none = -std::numeric_limits<double>::infinity();
  const Tensor additive({{none, none}, {0.0, none}}), seen = additive == 0;
  for (const Tensor& mask : {seen, additive}) {
    const Tensor y = q.scaled_dot_product_attention(q, v, {.mask = mask});
    EXPECT_EQ(y.tolist(), (Floats{0, 0, 5, 6}));
    const auto g = y.sum().gradient({q, v});
    for (const float d : g[0].tolist()) EXPECT_EQ(d, 0);
    EXPECT_EQ(g[1].tolist(), (Floats{1, 1, 0, 0}));
  }
}

TEST_P(DefinedOn, ProbabilitiesOfZeroAndOne) {
  const Tensor p({0.0, 1.0, 0.0, 1.0}), y({0.0, 1.0, 1.0, 0.0});
  EXPECT_EQ(p.binary_crossentropy(y, Reduction::none).tolist(), (Floats{0, 0, 100, 100}));
  for (const float g : slope(p.binary_crossentropy(y), p)) EXPECT_TRUE(std::isfinite(g));
}

TEST_P(DefinedOn, ProbabilitiesThatWereRoundedToOne) {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    std::vector<double> logits;
    for (double z = -120; z <= 120; z += 0.5) logits.push_back(z);
    const Tensor z = Tensor(logits).cast(dtype), y = z.full_like(0.25);
    const Tensor loss = z.sigmoid().binary_crossentropy(y, Reduction::sum);
    const auto slopes = slope(loss.cast(DType::float32), z);
    for (size_t i = 0; i < slopes.size(); ++i) {
      const double exact = 1 / (1 + std::exp(-logits[i])) - 0.25;
      EXPECT_LE(std::abs(slopes[i]), 2.1 * std::abs(exact) + 0.02) << repr(dtype) << " at " << logits[i];
      if (std::abs(logits[i]) <= 3) {
        EXPECT_NEAR(slopes[i], exact, 0.02) << repr(dtype) << " at " << logits[i];
      }
    }
  }
}

// A loop over taps that may have no iteration is no reason to load what no tap has.
TEST_P(DefinedOn, SumsOfSmallTransposedConvolutions) {
  const std::tuple<Sizes, ConvTransposeOptions> cases[] = {
      {{2, 4}, {.stride = {3, 3}, .dilation = {2, 2}, .padding = {1, 1}, .output_padding = {2, 2}}},
      {{3, 4}, {.stride = {5, 2}, .dilation = {2, 1}, .padding = {3, 2}, .output_padding = {4, 1}}},
      {{2, 2}, {.stride = {5, 5}, .dilation = {4, 2}, .padding = {1, 2}, .output_padding = {4, 4}}},
      {{3, 2}, {.stride = {4, 1}, .dilation = {3, 1}, .padding = {0, 0}, .output_padding = {3, 0}}},
  };
  for (const auto& [kernel, options] : cases) {
    const Tensor x = Tensor::ones({1, 1, 1, 2}).contiguous(), w = Tensor::ones({1, 1, kernel[0], kernel[1]}).contiguous();
    const Tensor y = x.conv_transpose2d(w, {}, options), stored = y.clone().realize();
    EXPECT_EQ((y * y).sum().item(), (stored * stored).sum().item());
    EXPECT_EQ(y.max(-1).tolist(), stored.max(-1).tolist());
  }
}

TEST_P(DefinedOn, GradientsOfOneElement) {
  const Tensor x({1.0, 2.0}), other({3.0, 4.0}), loss = (x * x).sum();
  EXPECT_EQ(loss.gradient({x}, Tensor({2.0}))[0].tolist(), (Floats{4, 8}));
  EXPECT_EQ(loss.reshape({1, 1}).gradient({x}, Tensor(2.0))[0].tolist(), (Floats{4, 8}));
  EXPECT_THROW(loss.gradient({x}, Tensor({2.0, 1.0})), ShapeError);
  EXPECT_EQ(loss.gradient({x, other})[1].tolist(), (Floats{0, 0}));
}

TEST_P(DefinedOn, DrawsWithoutReplacementNeedWeights) {
  const Tensor w({0.0, 1.0, 0.0, 2.0});
  EXPECT_EQ(w.multinomial(2).sort().values.tolist<int>(), (std::vector<int>{1, 3}));
  EXPECT_THROW(w.multinomial(3), ValueError);
  EXPECT_THROW(Tensor({{1.0, 1.0}, {1.0, 0.0}}).multinomial(2), ValueError);
  EXPECT_EQ(w.multinomial(5, true).shape(), Sizes{5});
  const double infinite = std::numeric_limits<double>::infinity();
  for (const bool replacement : {false, true})
    for (const Tensor& bad :
         {Tensor({0.0, 0.0}), Tensor({-1.0, 2.0}), Tensor({std::nan(""), 1.0}), Tensor({infinite, 1.0}), Tensor({{1.0, 1.0}, {0.0, 0.0}})})
      EXPECT_THROW(bad.multinomial(1, replacement), ValueError);
  const auto drawn = jit([](const Tensor& t) { return t.multinomial(2); });  // a replay counts nothing
  for (int i = 0; i < 4; ++i) EXPECT_EQ(drawn(w).shape(), Sizes{2});
}

}  // namespace
}  // namespace tinygrad
