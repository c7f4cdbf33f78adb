// Layers on a batch whose size is a Variable: one capture serves every size.
#include <gtest/gtest.h>

#include <functional>

#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"

namespace tinygrad {
namespace {

using Doubles = std::vector<double>;
using Layer = std::function<Tensor(const Tensor&)>;

class SymbolicLayers : public test::EveryDevice {
 protected:
  /// The layer on the first rows of x, jitted with their number as a variable, against the same with the number.
  static void check(const char* name, const Layer& layer, const Tensor& x) {
    SCOPED_TRACE(name);
    const Variable rows("rows", 1, x.size(0));
    const auto jitted = jit([&](const Variable& n) {
      Extents sizes(x.shape());
      sizes[0] = n;
      return layer(x.shrink_to(sizes));
    });
    for (const int64_t n : {2, 4, 3, 5}) {
      Sizes sizes = x.shape();
      sizes[0] = n;
      const Doubles got = jitted(rows.bind(n)).tolist<double>(), want = layer(x.shrink_to(sizes)).tolist<double>();
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-5) << n << " rows, element " << i;
    }
    EXPECT_TRUE(jitted.captured());
  }
};
INSTANTIATE_TEST_SUITE_P(All, SymbolicLayers, testing::ValuesIn(test::quick_devices()), test::device_test_name);

TEST_P(SymbolicLayers, GiveWhatTheyGiveForNumbers) {
  Tensor::manual_seed(5);
  const Tensor rows = Tensor::randn({5, 6}).realize(), signal = Tensor::randn({5, 4, 7}).realize(),
               image = Tensor::randn({5, 4, 6, 6}).realize();
  check("Linear", nn::Linear(6, 3), rows);
  check("Conv1d", nn::Conv1d(4, 3, 3, {.padding = {1}}), signal);
  check("Conv2d", nn::Conv2d(4, 6, 3, {.stride = {2}, .groups = 2}), image);
  check("ConvTranspose2d", nn::ConvTranspose2d(4, 3, 3, {.stride = {2}}), image);
  check("BatchNorm", nn::BatchNorm(4), image);
  check("GroupNorm", nn::GroupNorm(2, 4), image);
  check("InstanceNorm", nn::InstanceNorm(4), image);
  check("LayerNorm", nn::LayerNorm(6), rows);
  check("LayerNorm2d", nn::LayerNorm2d(4), image);
  check("RMSNorm", nn::RMSNorm(6), rows);
  const nn::LSTMCell cell(6, 3);
  check(
      "LSTMCell",
      [&](const Tensor& x) {
        const auto first = cell(x);
        return cell(x, first).first;
      },
      rows);
  const nn::Embedding words(9, 4);
  check("Embedding", words, Tensor::randint({5, 3}, 0, 9).realize());
}

TEST_P(SymbolicLayers, StatisticsOfABatch) {
  const Context training{{.training = true}};
  Tensor::manual_seed(5);
  const Tensor image = Tensor::randn({5, 4, 3, 3}).realize();
  const nn::BatchNorm norm(4);
  check("output", norm, image);
  const auto update = [&](const nn::BatchNorm& to) {
    return [&](const Tensor& x) {
      to(x);
      return Tensor::cat({to.running_mean, to.running_var});
    };
  };
  const nn::BatchNorm by_variable(4), by_number(4);
  const Variable rows("rows", 1, 5);
  const auto jitted = jit([&](const Variable& n) { return update(by_variable)(image.shrink_to({n, -1, -1, -1})); });
  for (const int64_t n : {2, 4, 3, 5}) {
    const Doubles got = jitted(rows.bind(n)).tolist<double>(), want = update(by_number)(image.shrink_to({n, -1, -1, -1})).tolist<double>();
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << n << " rows, element " << i;
  }
}

/// A Variable among numbers, in sizes of what is made, and as a spatial axis.
TEST_P(SymbolicLayers, VariablesAreNumbers) {
  const Variable v("v", 1, 6), n("n", 3, 6);
  const Tensor x{1.0f, 2.5f, -3.0f}, image = (Tensor::arange(2 * 6 * 5) % 5).reshape({1, 2, 6, 5}).to_float(),
                                     kernel = Tensor::ones({3, 2, 3, 2});
  using Function = std::function<Tensor(const Extent&, const Extent&)>;
  const Function functions[] = {
      [&](const Extent& a, const Extent&) { return Tensor(a + 1) * 2; },
      [&](const Extent& a, const Extent&) { return (x * a + a).maximum(a - 2) / a; },
      [&](const Extent& a, const Extent&) { return (x > 0).where(a, x) - Tensor::full({3}, a); },
      [&](const Extent& a, const Extent&) { return Tensor::full({a, 2}, 2.0).sum() + Tensor::arange(a, a + 3) + Tensor::arange(a).sum(); },
      [&](const Extent& a, const Extent&) { return Tensor::ones({4, 4}).triu(a - 2) + Tensor::ones({4, 4}).tril(a - 5); },
      [&](const Extent&, const Extent& b) {
        return image.shrink_to({1, 2, b, 5}).conv2d(kernel, {}, {.padding = {1}}).square().sum({0, 2, 3});
      },
      [&](const Extent&, const Extent& b) {
        return image.shrink_to({1, 2, b, 5}).max_pool2d({.kernel_size = {3, 2}, .stride = {2}, .ceil_mode = true}).square().sum({2, 3});
      }};
  for (const Function& f : functions) {
    const auto jitted = jit([&](const Variable& a, const Variable& b) { return f(a, b).contiguous(); });
    for (const int64_t k : {2, 4, 3, 5}) {
      const int64_t rows = k + 1;
      EXPECT_EQ(jitted(v.bind(k), n.bind(rows)).tolist<double>(), f(k, rows).tolist<double>()) << k;
    }
  }
  EXPECT_EQ(Tensor(Variable("w", 0, 3, DType::int64).bind(2)).dtype(), DType::int64);
  EXPECT_EQ((Tensor({1, 2}, {.dtype = DType::int8}) * v.bind(3)).dtype(), DType::int8);
  EXPECT_EQ(Tensor::ones({v, 2}).max_shape(), (Sizes{6, 2}));
  EXPECT_THROW(Tensor::ones({v, 2}).realize(), ValueError);
  EXPECT_THROW(Variable("w", 0, 3, DType::float32), DTypeError);
}

}  // namespace
}  // namespace tinygrad
