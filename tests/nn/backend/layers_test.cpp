// Convolutions, normalizations and cells against loops and PyTorch's numbers, with their gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"

namespace tinygrad {
namespace {

using Doubles = std::vector<double>;

class Layers : public test::EveryDevice {};
INSTANTIATE_TEST_SUITE_P(All, Layers, testing::ValuesIn(test::quick_devices()), test::device_test_name);

void expect_near(const Doubles& got, const Doubles& want, double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
}
void expect_near(const Tensor& got, const Doubles& want, double tolerance = 1e-5) { expect_near(got.tolist<double>(), want, tolerance); }

/// Distinct numbers of a fixed pattern in [-1, 1].
Tensor pattern(const Sizes& shape, double step = 0.37) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  Doubles v;
  for (int64_t i = 0; i < n; ++i) v.push_back(std::sin(step * static_cast<double>(i) + 0.5));
  return Tensor(v, shape);
}

/// The gradients of sum(f() * weights) for each of `inputs` against central differences, all in float64.
void check_gradients(const std::function<Tensor()>& f, std::vector<Tensor> inputs) {
  const Tensor weights = pattern(f().shape(), 0.71);
  const auto loss = [&] { return (f() * weights).sum(); };
  const std::vector<Tensor> grads = loss().gradient(inputs);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Doubles before = inputs[k].tolist<double>(), got = grads[k].tolist<double>();
    for (size_t i = 0; i < before.size(); i += before.size() > 12 ? 5 : 1) {
      double side[2];
      for (int s : {0, 1}) {
        Doubles moved = before;
        moved[i] += s ? 1e-5 : -1e-5;
        inputs[k].assign(Tensor(moved, inputs[k].shape()));
        side[s] = loss().item();
      }
      inputs[k].assign(Tensor(before, inputs[k].shape()));
      EXPECT_NEAR(got[i], (side[1] - side[0]) / 2e-5, 1e-6) << "input " << k << ", element " << i;
    }
  }
}

struct Sizes1d {
  int64_t batch, in, out, length, kernel, stride, padding, dilation, groups;
};

Doubles conv1d_by_loops(const Doubles& x, const Doubles& w, const Doubles& b, const Sizes1d& s) {
  const int64_t length = (s.length + 2 * s.padding - s.dilation * (s.kernel - 1) - 1) / s.stride + 1;
  Doubles out;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.out; ++o)
      for (int64_t l = 0; l < length; ++l) {
        double sum = b[size_t(o)];
        for (int64_t c = 0; c < s.in / s.groups; ++c)
          for (int64_t k = 0; k < s.kernel; ++k) {
            const int64_t at = l * s.stride + k * s.dilation - s.padding, channel = o / (s.out / s.groups) * (s.in / s.groups) + c;
            if (at >= 0 && at < s.length)
              sum += x[size_t((n * s.in + channel) * s.length + at)] * w[size_t((o * (s.in / s.groups) + c) * s.kernel + k)];
          }
        out.push_back(sum);
      }
  return out;
}

Doubles conv_transpose1d_by_loops(const Doubles& x, const Doubles& w, const Doubles& b, const Sizes1d& s, int64_t output_padding) {
  const int64_t length = (s.length - 1) * s.stride - 2 * s.padding + s.dilation * (s.kernel - 1) + output_padding + 1;
  const int64_t per_group = s.out / s.groups;
  Doubles out;
  for (int64_t i = 0; i < s.batch * s.out * length; ++i) out.push_back(b[size_t(i / length % s.out)]);
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t c = 0; c < s.in; ++c)
      for (int64_t o = 0; o < per_group; ++o)
        for (int64_t l = 0; l < s.length; ++l)
          for (int64_t k = 0; k < s.kernel; ++k) {
            const int64_t at = l * s.stride + k * s.dilation - s.padding, channel = c / (s.in / s.groups) * per_group + o;
            if (at >= 0 && at < length)
              out[size_t((n * s.out + channel) * length + at)] +=
                  x[size_t((n * s.in + c) * s.length + l)] * w[size_t((c * per_group + o) * s.kernel + k)];
          }
  return out;
}

TEST_P(Layers, Conv1dByItsDefinition) {
  for (const Sizes1d& s : {Sizes1d{2, 4, 6, 9, 3, 1, 0, 1, 1}, Sizes1d{2, 4, 6, 9, 3, 2, 2, 2, 2}, Sizes1d{1, 3, 3, 7, 2, 3, 1, 1, 3}}) {
    nn::Conv1d conv(s.in, s.out, s.kernel, {.stride = {s.stride}, .padding = {s.padding}, .dilation = {s.dilation}, .groups = s.groups});
    ASSERT_EQ(conv.weight.shape(), (Sizes{s.out, s.in / s.groups, s.kernel}));
    conv.weight = pattern(conv.weight.shape(), 0.9), conv.bias = pattern({s.out});
    const Tensor x = pattern({s.batch, s.in, s.length});
    expect_near(conv(x), conv1d_by_loops(x.tolist<double>(), conv.weight.tolist<double>(), conv.bias.tolist<double>(), s));
  }
}

TEST_P(Layers, ConvTranspose1dByItsDefinition) {
  for (const Sizes1d& s : {Sizes1d{2, 4, 6, 5, 3, 1, 0, 1, 1}, Sizes1d{2, 4, 6, 5, 3, 3, 2, 2, 2}}) {
    const int64_t extra = s.stride - 1;
    nn::ConvTranspose1d conv(
        s.in, s.out, s.kernel,
        {.stride = {s.stride}, .padding = {s.padding}, .output_padding = {extra}, .dilation = {s.dilation}, .groups = s.groups});
    ASSERT_EQ(conv.weight.shape(), (Sizes{s.in, s.out / s.groups, s.kernel}));
    conv.weight = pattern(conv.weight.shape(), 0.9), conv.bias = pattern({s.out});
    const Tensor x = pattern({s.batch, s.in, s.length});
    expect_near(conv(x), conv_transpose1d_by_loops(x.tolist<double>(), conv.weight.tolist<double>(), conv.bias.tolist<double>(), s, extra));
  }
}

TEST_P(Layers, ATransposedConvIsTheAdjointOfTheConv) {
  const nn::Conv2d conv(4, 6, {3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .groups = 2, .bias = false});
  nn::ConvTranspose2d adjoint(6, 4, {3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .output_padding = {1, 0}, .groups = 2, .bias = false});
  adjoint.weight = conv.weight;
  const Tensor x = pattern({2, 4, 6, 5}), y = conv(x), g = pattern(y.shape(), 0.2);
  expect_near(adjoint(g), (y * g).sum().gradient({x})[0].tolist<double>());
}

TEST_P(Layers, SamePaddingKeepsTheSize) {
  for (int64_t kernel : {1, 2, 3, 4}) {
    const nn::Conv2d conv(1, 1, {kernel, 3}, {.dilation = {2, 1}, .same = true});
    EXPECT_EQ(conv(Tensor::ones({1, 1, 9, 7})).shape(), (Sizes{1, 1, 9, 7})) << kernel;
  }
  nn::Conv1d even(1, 1, 2, {.bias = false, .same = true});
  even.weight = Tensor({10.0, 1.0}).reshape({1, 1, 2});
  expect_near(even(Tensor({1.0, 2.0, 3.0}).reshape({1, 1, 3})), {12, 23, 30});  // what is odd goes to the end, as in PyTorch
  EXPECT_THROW(nn::Conv2d(1, 1, 3, {.stride = {2}, .same = true}), ValueError);
}

TEST(LayersInit, WeightsFillTheRangeThatTheirFanInGives) {
  Tensor::manual_seed(1);
  const auto expect_range = [](const Tensor& t, double bound) {
    const double low = t.min().item(), high = t.max().item();
    EXPECT_TRUE(low >= -bound && high <= bound) << low << " " << high;
    EXPECT_TRUE(low < -0.9 * bound && high > 0.9 * bound) << low << " " << high;
  };
  expect_range(nn::Linear(64, 32).weight, 1.0 / 8);
  expect_range(nn::Linear(64, 200).bias, 1.0 / 8);
  expect_range(nn::Conv2d(16, 32, 2, {.groups = 2}).weight, 1.0 / 8);
  expect_range(nn::Conv1d(16, 200, 4).bias, 1.0 / 8);
  expect_range(nn::ConvTranspose2d(16, 32, 2).weight, 1.0 / 8);
  expect_range(nn::LSTMCell(7, 64).weight_ih, 1.0 / 8);
  expect_range(nn::LSTMCell(7, 64).weight_hh, 1.0 / 8);
  expect_range(nn::Embedding(60, 36).weight, std::sqrt(6.0 / 96));
  expect_near(nn::LSTMCell(1, 2).bias_hh, Doubles(8, 0));
}

Doubles normalized(Doubles v, double eps) {
  double mean = 0, var = 0;
  for (double x : v) mean += x / static_cast<double>(v.size());
  for (double x : v) var += (x - mean) * (x - mean) / static_cast<double>(v.size());
  for (double& x : v) x = (x - mean) / std::sqrt(var + eps);
  return v;
}

TEST_P(Layers, GroupAndInstanceNormByTheirDefinition) {
  const Tensor x = pattern({2, 6, 2, 3});
  const Doubles all = x.tolist<double>();
  for (int64_t groups : {1, 2, 6}) {
    nn::GroupNorm norm(groups, 6, {.eps = 1e-3});
    norm.weight = pattern({6}), norm.bias = pattern({6}, 0.1);
    const Doubles w = norm.weight.tolist<double>(), b = norm.bias.tolist<double>();
    const int64_t size = 36 / groups;
    Doubles want;
    for (int64_t g = 0; g < 2 * groups; ++g) {
      const Doubles y = normalized(Doubles(all.begin() + g * size, all.begin() + (g + 1) * size), 1e-3);
      for (double v : y) {
        const size_t channel = want.size() / 6 % 6;
        want.push_back(v * w[channel] + b[channel]);
      }
    }
    expect_near(norm(x), want);
    if (groups != 6) continue;
    nn::InstanceNorm instance(6, {.eps = 1e-3});
    instance.weight = norm.weight, instance.bias = norm.bias;
    expect_near(instance(x), want);
  }
  const nn::GroupNorm plain(3, 6, {.affine = false});
  EXPECT_TRUE(nn::state::get_parameters(plain).empty());
  EXPECT_THROW(plain(Tensor::ones({2, 5, 2})), ShapeError);
  EXPECT_THROW(nn::GroupNorm(4, 6), ValueError);
}

TEST_P(Layers, LayerNorm2dNormalizesChannels) {
  nn::LayerNorm2d norm(3);
  norm.weight = pattern({3});
  const Tensor x = pattern({2, 3, 2, 2});
  const Doubles all = x.tolist<double>(), w = norm.weight.tolist<double>(), got = norm(x).tolist<double>();
  for (size_t n = 0; n < 2; ++n)
    for (size_t at = 0; at < 4; ++at) {
      const Doubles y = normalized({all[n * 12 + at], all[n * 12 + 4 + at], all[n * 12 + 8 + at]}, 1e-5);
      for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(got[n * 12 + c * 4 + at], y[c] * w[c], 1e-5);
    }
  EXPECT_THROW(norm(Tensor::ones({2, 3, 2})), ShapeError);
}

TEST_P(Layers, RmsNormByItsDefinition) {
  nn::RMSNorm norm(4, {.eps = 0.5});
  norm.weight = Tensor({1.0, 2.0, 3.0, 4.0});
  const double scale = 1 / std::sqrt((1 + 4 + 9 + 16) / 4.0 + 0.5);
  expect_near(norm(Tensor({{1.0, -2.0, 3.0, -4.0}})), {scale, -4 * scale, 9 * scale, -16 * scale});
  const nn::RMSNorm plain(4, {.elementwise_affine = false});
  const Tensor halves = plain(Tensor({300.0, 300.0, 300.0, 300.0}, {.dtype = DType::float16}));  // whose squares are no halves
  EXPECT_EQ(halves.dtype(), DType::float16);
  expect_near(halves, {1, 1, 1, 1});
}

/// As float64 parameters with memory of their own.
void use_doubles(const nn::Module& module) {
  for (Tensor t : nn::state::get_parameters(module)) t.replace(pattern(t.shape(), 0.83));
}

TEST_P(Layers, LstmCellGivesPyTorchsNumbers) {
  nn::LSTMCell cell(2, 3);
  use_doubles(cell);
  const Tensor x = pattern({2, 2}), h = pattern({2, 3}, 0.2), c = pattern({2, 3}, 0.3);
  const auto [h1, c1] = cell(x);
  expect_near(h1, {-0.590767658, 0.063196932, 0.291270361, -0.611181009, 0.006672138, 0.259058003});
  expect_near(c1, {-0.863442515, 0.121540710, 0.638915791, -0.912512698, 0.018303628, 0.516535722});
  const auto [h2, c2] = cell(x, std::pair(h, c));
  expect_near(h2, {-0.324662628, 0.242362676, 0.246768027, -0.107616952, 0.061027391, 0.240526861});
  expect_near(c2, {-0.650086958, 0.304197666, 1.061613218, -0.290190530, 0.075171314, 1.113565571});
  EXPECT_THROW(cell(Tensor::ones({2, 3})), ShapeError);
  EXPECT_THROW(cell(x, std::pair(h, Tensor::ones({3, 3}))), ShapeError);
  EXPECT_EQ(nn::state::get_parameters(nn::LSTMCell(2, 3, {.bias = false})).size(), 2U);
}

TEST(LayersGradient, MatchesDifferences) {
  const Context doubles{{.default_float = std::string("float64")}};
  const auto check = [](const auto& layer, const Tensor& x) {
    use_doubles(layer);
    std::vector<Tensor> inputs = nn::state::get_parameters(layer);
    inputs.push_back(x);
    check_gradients([&] { return layer(x); }, inputs);
  };
  check(nn::Conv1d(4, 4, 3, {.stride = {2}, .padding = {1}, .groups = 2}), pattern({2, 4, 6}));
  check(nn::ConvTranspose1d(4, 4, 3, {.stride = {2}, .padding = {1}, .groups = 2}), pattern({2, 4, 4}));
  check(nn::ConvTranspose2d(2, 2, {3, 2}, {.stride = {2, 1}, .dilation = {1, 2}}), pattern({1, 2, 3, 2}));
  check(nn::GroupNorm(2, 4), pattern({2, 4, 3}));
  check(nn::LayerNorm2d(3), pattern({1, 3, 2, 2}));
  check(nn::RMSNorm(4), pattern({3, 4}));
  const nn::LSTMCell cell(2, 3);
  use_doubles(cell);
  const Tensor x = pattern({2, 2}), h = pattern({2, 3}, 0.2), c = pattern({2, 3}, 0.3);
  const auto both = [&] {
    const auto [h1, c1] = cell(x, std::pair(h, c));
    return Tensor::cat({h1, c1}, 1);
  };
  check_gradients(both, {x, h, c, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh});
}

TEST(LayersMistakes, AreNamed) {
  EXPECT_THROW(nn::Linear(0, 3), ValueError);
  EXPECT_THROW(nn::Conv2d(3, 4, 0), ValueError);
  EXPECT_THROW(nn::Conv2d(3, 4, Sizes{}), ValueError);
  EXPECT_THROW(nn::Conv2d(4, 4, 3, {.groups = 0}), ValueError);
  EXPECT_THROW(nn::ConvTranspose2d(3, 4, 3, {.groups = 2}), ValueError);
  EXPECT_THROW(nn::ConvTranspose1d(3, 4, 3)(Tensor::ones({2, 3, 4, 4})), ShapeError);
  EXPECT_THROW(nn::Embedding(3, 0), ValueError);
  EXPECT_THROW(nn::Embedding(3, 2)(Tensor({1.0})), DTypeError);
  EXPECT_THROW(nn::LayerNorm(Sizes{}), ValueError);
  EXPECT_THROW(nn::LSTMCell(2, 0), ValueError);
}

}  // namespace
}  // namespace tinygrad
