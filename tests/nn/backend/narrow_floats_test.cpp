// What is made of many elements of a narrow float, and what takes several steps, is computed in float32 and rounded once: against the same
// in float64, with gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include <tinygrad/nn.h>
#include <tinygrad/tinygrad.h>

#include "support/ulps.h"

namespace tinygrad {
namespace {

/// Of x (4, 6, 8), with the same dtype.
struct Composite {
  const char* name;
  double scale;                                               ///< of the numbers in x
  std::function<Tensor(const Tensor& x, const Tensor& y)> f;  ///< y is like x, of numbers from 0.25 to 1
  double ulps = 0.52;
};

Tensor labels() { return Tensor({{0, 3, 5, 1, 2, 2, 4, 5}, {1, 1, 0, 3, 4, 5, 2, 0}, {2, 0, 1, 1, 5, 3, 3, 4}, {5, 4, 3, 2, 1, 0, 0, 1}}); }

template <class Layer>
Layer in_dtype(Layer layer, DType d) {
  for (Tensor* t : {&layer.weight, &layer.bias})
    if (t->defined()) *t = (Tensor::arange(t->numel(), {.dtype = DType::float64}).reshape(t->shape()) * 0.125 + 0.5).cast(d);
  return layer;
}

// clang-format off
const Composite composites[] = {
  {"sum", 300, [](const Tensor& x, const Tensor&) { return x.sum({1}); }},
  {"mean", 3e4, [](const Tensor& x, const Tensor&) { return x.mean({1, 2}); }},
  {"prod", 1.5, [](const Tensor& x, const Tensor&) { return x.prod({2}); }},
  {"var", 100, [](const Tensor& x, const Tensor&) { return x.var({2}); }},
  {"std", 3e4, [](const Tensor& x, const Tensor&) { return x.std({1, 2}); }},
  {"cumsum", 300, [](const Tensor& x, const Tensor&) { return x.cumsum(2); }},
  {"cumprod", 1.5, [](const Tensor& x, const Tensor&) { return x.cumprod(2); }},
  {"logsumexp", 300, [](const Tensor& x, const Tensor&) { return x.logsumexp({1}); }},
  {"logcumsumexp", 10, [](const Tensor& x, const Tensor&) { return x.logcumsumexp(2); }},
  {"normalize", 3e4, [](const Tensor& x, const Tensor&) { return x.normalize(); }},
  {"normalize3", 300, [](const Tensor& x, const Tensor&) { return x.normalize(3, 2); }},
  {"softmax", 8, [](const Tensor& x, const Tensor&) { return x.softmax(); }},
  {"softmin", 8, [](const Tensor& x, const Tensor&) { return x.softmin({1}); }},
  {"log_softmax", 300, [](const Tensor& x, const Tensor&) { return x.log_softmax(); }},
  {"layernorm", 3e4, [](const Tensor& x, const Tensor&) { return x.layernorm(); }},
  {"LayerNorm", 300, [](const Tensor& x, const Tensor&) { return in_dtype(nn::LayerNorm(8), x.dtype())(x); }},
  {"GroupNorm", 300, [](const Tensor& x, const Tensor&) { return in_dtype(nn::GroupNorm(2, 6), x.dtype())(x); }},
  {"InstanceNorm", 300, [](const Tensor& x, const Tensor&) { return in_dtype(nn::InstanceNorm(6), x.dtype())(x); }},
  {"BatchNorm", 300, [](const Tensor& x, const Tensor&) {
     nn::BatchNorm norm = in_dtype(nn::BatchNorm(6, {.track_running_stats = false}), x.dtype());
     return norm(x); }},
  {"batchnorm", 10, [](const Tensor& x, const Tensor& y) {
     const Tensor v = y.max({0, 2});
     return x.batchnorm(v, v, v, v); }},
  {"RMSNorm", 3e4, [](const Tensor& x, const Tensor&) {
     nn::RMSNorm norm(8);
     norm.weight = (Tensor::arange(8, {.dtype = DType::float64}) * 0.125 + 0.5).cast(x.dtype());
     return norm(x); }},
  {"cross_entropy", 30, [](const Tensor& x, const Tensor&) { return x.cross_entropy(labels(), {.label_smoothing = 0.1}); }},
  {"cross_entropy_of_probabilities", 30, [](const Tensor& x, const Tensor& y) { return x.cross_entropy(y); }},
  {"sparse_categorical_crossentropy", 30, [](const Tensor& x, const Tensor&) {
     return x.permute({0, 2, 1}).sparse_categorical_crossentropy(labels(), {.reduction = Reduction::none}); }},
  {"nll_loss", 30, [](const Tensor& x, const Tensor&) { return x.nll_loss(labels()); }},
  {"binary_crossentropy", 1, [](const Tensor& x, const Tensor& y) { return (x.abs() * 0.25).binary_crossentropy(y); }},  // exact below 1
  {"binary_crossentropy_logits", 8, [](const Tensor& x, const Tensor& y) { return x.binary_crossentropy_logits(y); }},
  // Weights are rounded for their product with the values.
  {"attention", 30, [](const Tensor& x, const Tensor& y) { return (x * 16).scaled_dot_product_attention(x * 16, y); }, 1.1},
  {"causal", 2, [](const Tensor& x, const Tensor& y) { return x.scaled_dot_product_attention(x, y, {.is_causal = true}); }, 1.1},
  {"masked", 2, [](const Tensor& x, const Tensor& y) {
     return x.scaled_dot_product_attention(x, y, {.mask = Tensor::arange(6).reshape({6, 1}) > Tensor::arange(6)}); }, 1.1},
  {"avg_pool2d", 300, [](const Tensor& x, const Tensor&) {
     return x.avg_pool2d({.kernel_size = {3, 3}, .stride = {2}, .padding = {1}, .count_include_pad = false}); }},
  {"interpolate", 300, [](const Tensor& x, const Tensor&) { return x.interpolate({5, 11}); }},
  {"lerp", 100, [](const Tensor& x, const Tensor& y) { return x.lerp(y, 0.3125); }},
  {"logaddexp", 10, [](const Tensor& x, const Tensor& y) { return x.logaddexp(y); }},
  {"cube", 20, [](const Tensor& x, const Tensor&) { return x.pow(3); }},
  {"scatter_mean", 300, [](const Tensor& x, const Tensor& y) {
     return y.scatter_reduce(2, (Tensor::arange(192) % 3).reshape({4, 6, 8}), x, ScatterMode::mean); }},
};
// clang-format on

class NarrowFloats : public testing::TestWithParam<Composite> {};

std::vector<double> doubles(const Tensor& t) { return t.cast(DType::float64).tolist<double>(); }

TEST_P(NarrowFloats, AreRoundedOnce) {
  const Composite& c = GetParam();
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0.25, 1);
  std::vector<double> numbers, weights;
  for (int i = 0; i < 192; ++i) {
    numbers.push_back(std::clamp(normal(random), -2.0, 2.0) * c.scale);
    weights.push_back(uniform(random));
  }
  const auto loaded = [](const std::vector<double>& values, DType d) { return Tensor(values, {.dtype = d}).reshape({4, 6, 8}); };
  for (const DType d : {DType::float16, DType::bfloat16}) {
    const Tensor x = loaded(numbers, DType::float64).cast(d).realize(), y = loaded(weights, DType::float64).cast(d).realize();
    const Tensor wide_x = x.cast(DType::float64).realize(), wide_y = y.cast(DType::float64).realize();
    const Tensor got = c.f(x, y), want = c.f(wide_x, wide_y);
    EXPECT_EQ(got.dtype(), d);
    const Tensor seeds = (Tensor::arange(got.numel()) % 5 - 2).reshape(got.shape());
    const Tensor slope = got.gradient({x}, seeds.cast(d))[0], wide_slope = want.gradient({wide_x}, seeds.cast(DType::float64))[0];
    EXPECT_EQ(slope.dtype(), d);
    const auto check = [&](const char* what, const std::vector<double>& a, const std::vector<double>& b, double ulps, double part) {
      double greatest = 0;
      for (const double v : b)
        if (std::isfinite(v)) greatest = std::max(greatest, std::abs(v));
      for (size_t i = 0; i < b.size(); ++i)
        EXPECT_TRUE(std::abs(a[i] - b[i]) <= part * greatest || test::ulps(a[i], b[i], d) <= ulps)
            << what << " " << repr(d) << " element " << i << ": " << a[i] << ", not " << b[i];
    };
    check("value", doubles(got), doubles(want), c.ulps, 2e-6);
    // The weights of attention and their gradients are rounded between kernels, and so may be what several paths bring.
    check("gradient", doubles(slope), doubles(wide_slope), c.ulps + 0.5, c.ulps > 1 ? 0.02 : 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(All, NarrowFloats, testing::ValuesIn(composites), [](const auto& test) { return std::string(test.param.name); });

TEST(NarrowFloats, ScoresBeyondTheirRange) {
  const Tensor x = Tensor::full({1, 2, 64}, 200.0, {.dtype = DType::float16}), v = Tensor({{{1.0}, {3.0}}}, {.dtype = DType::float16});
  EXPECT_EQ(x.scaled_dot_product_attention(x, v).tolist(), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace tinygrad
