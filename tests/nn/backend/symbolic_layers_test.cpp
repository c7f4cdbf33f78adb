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

}  // namespace
}  // namespace tinygrad
