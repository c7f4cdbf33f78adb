// The works that models are made of, by the ways of a user, on every device and on CPUs of other kinds: beside the interpreted device.
#include "runtime/every_device.h"

#include <tinygrad/tinygrad.h>

#include <cmath>
#include <cstdlib>

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

class Models : public testing::TestWithParam<std::string> {
 protected:
  /// `f` of random numbers of these shapes and dtype, there and on the interpreted device.
  template <class F>
  static void expect_same(const std::vector<Sizes>& shapes, DType dtype, double bound, F f) {
    const auto on = [&](const std::string& device) {
      std::vector<Tensor> inputs;
      for (size_t i = 0; i < shapes.size(); ++i) {
        int64_t n = 1;
        for (int64_t s : shapes[i]) n *= s;
        Floats values;
        for (int64_t k = 0; k < n; ++k) values.push_back(float((k * 37 + int64_t(i) * 11) % 101 - 50) / (is_int(dtype) ? 1 : 50));
        inputs.push_back(Tensor(values, shapes[i], {.dtype = dtype, .device = device}).realize());
      }
      return f(inputs).cast(DType::float32).tolist();
    };
    const Floats got = on(default_device()), want = on("INTERP");
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_LE(std::abs(got[i] - want[i]), bound * std::max(1.0f, std::abs(want[i]))) << i;
  }

  const Context on_device_{{.dev = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Devices, Models, testing::ValuesIn(test::every_device()), test::device_test_name);

TEST_P(Models, MatrixProducts) {
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{16, 32, 24}, {7, 13, 11}, {1, 64, 40}, {48, 1, 5}})
    expect_same({{m, k}, {k, n}}, DType::float32, 1e-5, [](const std::vector<Tensor>& x) { return x[0].matmul(x[1]); });
  expect_same({{3, 8, 12}, {3, 12, 10}}, DType::float32, 1e-5, [](const std::vector<Tensor>& x) { return x[0].matmul(x[1]); });
  expect_same({{16, 32}, {32, 24}}, DType::float16, 1e-3, [](const std::vector<Tensor>& x) { return x[0].matmul(x[1]); });
  expect_same({{16, 32}, {32, 24}}, DType::int32, 0, [](const std::vector<Tensor>& x) { return x[0].matmul(x[1]); });
}

TEST_P(Models, Convolutions) {
  expect_same({{2, 3, 9, 10}, {4, 3, 3, 3}, {4}}, DType::float32, 1e-5,
              [](const std::vector<Tensor>& x) { return x[0].conv2d(x[1], x[2], {.padding = {1, 1}}); });
  expect_same({{1, 4, 8, 8}, {8, 2, 3, 3}}, DType::float32, 1e-5,
              [](const std::vector<Tensor>& x) { return x[0].conv2d(x[1], {}, {.groups = 2, .stride = {2, 2}}); });
}

TEST_P(Models, OnImages) {
  const Context images{{.image = 1}};
  expect_same({{16, 32}, {32, 24}}, DType::float32, 1e-5, [](const std::vector<Tensor>& x) { return x[0].matmul(x[1]).relu(); });
  expect_same({{1, 4, 8, 8}, {8, 4, 3, 3}}, DType::float32, 1e-5,
              [](const std::vector<Tensor>& x) { return x[0].conv2d(x[1], {}, {.padding = {1}}); });
  expect_same({{8, 64}, {64, 16}}, DType::float16, 1e-3, [](const std::vector<Tensor>& x) { return x[0].softmax().matmul(x[1]); });
}

TEST_P(Models, Softmax) {
  for (const DType d : {DType::float32, DType::float16})
    expect_same({{6, 50}}, d, d == DType::float16 ? 1e-3 : 1e-5, [](const std::vector<Tensor>& x) { return (x[0] * 5).softmax(); });
  expect_same({{2, 2, 12, 8}, {2, 2, 12, 8}, {2, 2, 12, 8}}, DType::float32, 1e-5,
              [](const std::vector<Tensor>& x) { return x[0].scaled_dot_product_attention(x[1], x[2]); });
}

// A driver may be compiling or running a kernel when the program ends.
TEST_P(Models, MayRunWhenTheProgramEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end = [] {
    const Tensor x = Tensor::arange(0, 200 * 300).reshape({200, 300}).cast(DType::float32);
    x.matmul(x.T()).relu().realize();
    std::exit(0);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tinygrad
