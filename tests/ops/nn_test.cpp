#include "ops/nn.h"

#include <tinygrad/errors.h>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "ops/winograd.h"
#include "support.h"

namespace tinygrad::ops {
namespace {

using NnTest = OpsTest;

TEST_F(NnTest, Matmul) {
  const UOp a = counting({2, 3}), b = counting({3, 2}), v = tensor({3}, {1, 2, 3});
  expect_values(matmul(a, b), {10, 13, 28, 40});
  expect_values(matmul(a, v), {8, 26});
  expect_values(matmul(v, b), {16, 22});
  expect_values(matmul(v, v), {14});
  expect_shape(matmul(counting({5, 1, 2, 3}), counting({4, 3, 7})), "(5, 4, 2, 7)");
  expect_shape(matmul(counting({5, 2, 3}), v), "(5, 2)");
  expect_shape(matmul(v, counting({5, 3, 2})), "(5, 2)");
  expect_values(matmul(counting({2, 2, 2}), counting({2, 2})), {2, 3, 6, 11, 10, 19, 14, 27});
  EXPECT_EQ(matmul(counting({2, 2}, DType::float16), counting({2, 2}, DType::float16)).dtype(), DType::float16);
  EXPECT_EQ(matmul(counting({2, 2}, DType::int8), counting({2, 2}, DType::float16)).dtype(), DType::float16);
  EXPECT_EQ(message_of<ShapeError>([&] { matmul(counting({3, 4}), counting({5, 6})); }),
            "matmul: cannot multiply (3, 4) by (5, 6): the inner sizes 4 and 5 differ");
  expect_values(linear(a, b, tensor({2}, {1, -1})), {11, 12, 29, 39});
  expect_values(linear(a, v), {0, 2, 6, 3, 8, 15});
}

TEST_F(NnTest, Einsum) {
  const UOp a = counting({2, 3}), b = counting({3, 2}), c = counting({2, 3, 3});
  const UOp ab[] = {a, b}, only_a[] = {a}, only_c[] = {c}, aa[] = {a, a}, cb[] = {c, b};
  expect_values(einsum("ij,jk->ik", ab), values(matmul(a, b)));
  expect_values(einsum("ij,jk", ab), values(matmul(a, b)));
  expect_values(einsum("ij->ji", only_a), values(transpose(a)));
  expect_values(einsum("ij->", only_a), {15});
  expect_values(einsum("bii->b", only_c), {12, 39});
  expect_values(einsum("bii->bi", only_c), {0, 4, 8, 9, 13, 17});
  expect_values(einsum("ij, ij -> j", aa), {9, 17, 29});
  expect_values(einsum("...ij,jk->...ik", cb), values(matmul(c, b)));
  expect_values(einsum("...j->...", only_c), values(sum(c, -1)));
  EXPECT_THROW(einsum("ij,jk->ik", only_a), ValueError);
  EXPECT_THROW(einsum("ij->ik", only_a), ValueError);
  const UOp bad[] = {a, a};
  EXPECT_EQ(message_of<ShapeError>([&] { einsum("ij,jk->ik", bad); }), "einsum: \"ij,jk->ik\": j has the sizes 3 and 2");
}

struct Conv {
  int64_t batch, in, out, height, width, kh, kw, groups, stride, dilation, padding;
};

class ConvTest : public OpsTest, public ::testing::WithParamInterface<Conv> {};

TEST_P(ConvTest, IsTheSumOverTheKernel) {
  const Conv c = GetParam();
  const int64_t cin = c.in / c.groups, cout = c.out / c.groups;
  const Values x = numbers(size_t(c.batch * c.in * c.height * c.width)), w = numbers(size_t(c.out * cin * c.kh * c.kw)),
               b = numbers(size_t(c.out));
  const int64_t oh = (c.height + 2 * c.padding - c.dilation * (c.kh - 1) - 1) / c.stride + 1;
  const int64_t ow = (c.width + 2 * c.padding - c.dilation * (c.kw - 1) - 1) / c.stride + 1;
  Values want, back(x.size(), 0.0);
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.out; ++o)
      for (int64_t i = 0; i < oh * ow; ++i) {
        double total = b[size_t(o)];
        for (int64_t k = 0; k < cin * c.kh * c.kw; ++k) {
          const int64_t channel = o / cout * cin + k / (c.kh * c.kw);
          const int64_t r = i / ow * c.stride - c.padding + k / c.kw % c.kh * c.dilation,
                        q = i % ow * c.stride - c.padding + k % c.kw * c.dilation;
          if (r < 0 || q < 0 || r >= c.height || q >= c.width) continue;
          total += x[size_t(((n * c.in + channel) * c.height + r) * c.width + q)] * w[size_t(o * cin * c.kh * c.kw + k)];
        }
        want.push_back(total);
      }
  const UOp y = conv2d(tensor({c.batch, c.in, c.height, c.width}, x), tensor({c.out, cin, c.kh, c.kw}, w), tensor({c.out}, b),
                       {.groups = c.groups, .stride = c.stride, .dilation = c.dilation, .padding = c.padding});
  expect_shape(y, to_string(make_shape({c.batch, c.out, oh, ow})));
  expect_values(y, want, 1e-11);

  // The transpose, by its definition: <conv(x), z> = <x, conv_transpose(z)>.
  const Values z = numbers(want.size());
  const UOp t = conv_transpose2d(tensor({c.batch, c.out, oh, ow}, z), tensor({c.out, cin, c.kh, c.kw}, w), {},
                                 {.groups = c.groups,
                                  .stride = c.stride,
                                  .dilation = c.dilation,
                                  .padding = c.padding,
                                  .output_padding = {(c.height + 2 * c.padding - c.dilation * (c.kh - 1) - 1) % c.stride,
                                                     (c.width + 2 * c.padding - c.dilation * (c.kw - 1) - 1) % c.stride}});
  expect_shape(t, to_string(make_shape({c.batch, c.in, c.height, c.width})));
  double left = 0, right = 0;
  for (size_t i = 0; i < want.size(); ++i) left += (want[i] - b[i / size_t(oh * ow) % size_t(c.out)]) * z[i];
  const Values tv = values(t);
  for (size_t i = 0; i < x.size(); ++i) right += x[i] * tv[i];
  EXPECT_NEAR(left, right, 1e-10);
}

INSTANTIATE_TEST_SUITE_P(All, ConvTest,
                         ::testing::Values(Conv{1, 1, 1, 5, 5, 3, 3, 1, 1, 1, 0}, Conv{2, 3, 4, 6, 5, 3, 2, 1, 1, 1, 1},
                                           Conv{1, 4, 6, 7, 7, 3, 3, 2, 2, 1, 1}, Conv{1, 2, 2, 8, 7, 2, 3, 2, 1, 2, 2},
                                           Conv{1, 2, 3, 6, 6, 2, 2, 1, 2, 1, 0}, Conv{1, 2, 2, 5, 6, 1, 1, 1, 1, 1, 0},
                                           Conv{2, 3, 3, 7, 8, 3, 3, 3, 3, 2, 2}));

struct WinogradCase {
  int64_t batch, in, out, groups, height, width, kernel_height, kernel_width, padding;
};
constexpr WinogradCase winograd_cases[] = {{1, 1, 1, 1, 6, 6, 3, 3, 0},  {2, 3, 4, 1, 8, 7, 3, 3, 1}, {1, 4, 6, 2, 3, 5, 3, 3, 1},
                                           {1, 2, 2, 2, 13, 4, 3, 3, 2}, {1, 1, 2, 1, 3, 3, 3, 3, 0}, {2, 1, 2, 1, 9, 7, 5, 2, 1},
                                           {1, 2, 1, 1, 5, 11, 4, 5, 2}, {1, 1, 1, 1, 2, 5, 2, 5, 0}};

TEST_F(NnTest, WinogradGivesWhatTheDirectConvolutionGives) {
  for (const WinogradCase& c : winograd_cases) {
    const UOp x = random({c.batch, c.in, c.height, c.width}), w = random({c.out, c.in / c.groups, c.kernel_height, c.kernel_width}),
              b = random({c.out});
    const UOp direct = conv2d(x, w, b, {.groups = c.groups, .padding = c.padding});
    const UOp winograd = conv2d(x, w, b, {.groups = c.groups, .padding = c.padding, .winograd = Winograd::always});
    EXPECT_NE(direct, winograd);
    expect_shape(winograd, to_string(shape_of(direct)));
    expect_values(winograd, values(direct), 1e-12);
  }
}

TEST_F(NnTest, WinogradHasTheGradientsOfTheDirectConvolution) {
  for (const WinogradCase& c : winograd_cases) {
    const UOp x = random({c.batch, c.in, c.height, c.width}), w = random({c.out, c.in / c.groups, c.kernel_height, c.kernel_width});
    const auto gradients = [&](Winograd choice, const UOp& g) {
      return gradient(conv2d(x, w, {}, {.groups = c.groups, .padding = c.padding, .winograd = choice}), g, std::array{x, w});
    };
    const UOp y = conv2d(x, w, {}, {.groups = c.groups, .padding = c.padding});
    const UOp g = random({c.batch, c.out, shape_of(y)[2].value(), shape_of(y)[3].value()});
    const auto direct = gradients(Winograd::never, g), winograd = gradients(Winograd::always, g);
    for (size_t i = 0; i < 2; ++i) {
      expect_shape(winograd[i], to_string(shape_of(direct[i])));
      expect_values(winograd[i], values(direct[i]), 1e-11);
    }
  }
}

TEST_F(NnTest, WinogradIsOnlyForWhatItSuits) {
  const UOp x = random({1, 2, 8, 8}), w = random({2, 2, 3, 3});
  const auto same = [](const UOp& image, const UOp& kernel, ConvOptions o) {
    const UOp direct = conv2d(image, kernel, {}, o);
    o.winograd = Winograd::always;
    return conv2d(image, kernel, {}, o) == direct;
  };
  EXPECT_FALSE(same(x, w, {}));
  EXPECT_TRUE(same(x, w, {.stride = 2}));
  EXPECT_TRUE(same(x, w, {.dilation = 2}));
  EXPECT_TRUE(same(x, random({2, 2, 3, 1}), {}));
  EXPECT_TRUE(same(x, random({2, 2, 6, 3}), {}));
  EXPECT_TRUE(same(counting({1, 1, 5, 5}, DType::int32), counting({1, 1, 3, 3}, DType::int32), {}));
  EXPECT_TRUE(same(random({1, 2, 9}), random({2, 2, 3}), {}));
}

TEST_F(NnTest, WinogradPaysForManyChannelsAndPlaces) {
  const auto pays = [&](int64_t batch, int64_t channels, int64_t size, int64_t window, int64_t groups = 1, bool fixed = false) {
    const int64_t padded = size + window - 1;
    return winograd_pays(zeros({batch, channels * groups, padded, padded}, DType::float32),
                         zeros({channels * groups, channels, window, window}, DType::float32), groups, fixed);
  };
  EXPECT_TRUE(pays(1, 64, 56, 3));
  EXPECT_TRUE(pays(8, 512, 8, 3));
  EXPECT_FALSE(pays(1, 512, 8, 3)) << "the weights take longest";
  EXPECT_FALSE(pays(1, 256, 14, 3));
  EXPECT_TRUE(pays(1, 256, 14, 3, 1, true)) << "that stay as they are";
  EXPECT_FALSE(pays(512, 48, 8, 3)) << "gradients transform again what is saved";
  EXPECT_TRUE(pays(512, 48, 8, 3, 1, true)) << "that stay as they are";
  EXPECT_FALSE(pays(8, 16, 56, 3)) << "few products for each element";
  EXPECT_FALSE(pays(8, 1, 56, 3, 64)) << "depthwise";
  EXPECT_FALSE(pays(64, 256, 1, 3)) << "one result of a tile is used";
  EXPECT_FALSE(winograd_pays(zeros({1, 64, 58, 58}, DType::float16), zeros({64, 64, 3, 3}, DType::float16), 1, true)) << "they round more";
  EXPECT_FALSE(pays(64, 256, 224, 3)) << "gigabytes between the kernels";
}

TEST_F(NnTest, ConvErrorsAndOtherRanks) {
  expect_values(conv2d(counting({1, 1, 5}), tensor({1, 1, 2}, {1, -1})), {-1, -1, -1, -1});
  expect_shape(conv2d(counting({1, 2, 4, 4, 4}), counting({3, 2, 2, 2, 2})), "(1, 3, 3, 3, 3)");
  expect_shape(conv2d(counting({1, 1, 4, 4}), counting({1, 1, 2, 2}), {}, {.padding = {1, 2, 3, 4}}), "(1, 1, 10, 6)");
  EXPECT_EQ(message_of<ShapeError>([&] { conv2d(counting({1, 3, 5, 5}), counting({2, 2, 3, 3})); }),
            "conv2d: the input (1, 3, 5, 5) has 3 channels, the weight (2, 2, 3, 3) with 1 groups takes 2");
  EXPECT_THROW(conv2d(counting({1, 3, 5}), counting({2, 3, 3, 3})), ShapeError);
  EXPECT_THROW(conv2d(counting({1, 1, 2, 2}), counting({1, 1, 3, 3})), ShapeError);
}

TEST_F(NnTest, Pooling) {
  const UOp x = tensor({1, 1, 4, 4}, {1, 2, 3, 4, 8, 7, 6, 5, 0, -1, -2, -3, -4, -5, -6, -7});
  expect_values(max_pool2d(x), {8, 6, 0, -2});
  expect_values(avg_pool2d(x), {4.5, 4.5, -2.5, -4.5});
  expect_values(max_pool2d(x, {.kernel_size = {3, 3}, .stride = 1}), {8, 7, 8, 7});
  expect_values(max_pool2d(x, {.kernel_size = {3, 3}, .stride = 2, .padding = 1}), {8, 7, 8, 7});
  const UOp row = tensor({1, 1, 5}, {1, 2, 3, 4, 5});
  expect_values(max_pool2d(row, {.kernel_size = {2}, .ceil_mode = true}), {2, 4, 5});
  expect_values(avg_pool2d(row, {.kernel_size = {2}, .ceil_mode = true}), {1.5, 3.5, 5});
  expect_values(avg_pool2d(row, {.kernel_size = {3}, .stride = 2, .padding = 1}), {1, 3, 3});
  expect_values(avg_pool2d(row, {.kernel_size = {3}, .stride = 2, .padding = 1, .count_include_pad = false}), {1.5, 3, 4.5});
  // PyTorch's divisors: the window that hangs over counts the padding it reaches, not what lies beyond.
  expect_values(avg_pool2d(tensor({1, 1, 4}, {1, 2, 3, 4}), {.kernel_size = {3}, .stride = 2, .padding = 1, .ceil_mode = true}), {1, 3, 2});
  const UOp at = max_pool2d_indices(x);
  expect_values(at, {4, 6, 8, 10});
  EXPECT_EQ(at.dtype(), DType::int32);
  expect_values(max_unpool2d(max_pool2d(x), at), {0, 0, 0, 0, 8, 0, 6, 0, 0, 0, -2, 0, 0, 0, 0, 0});
  expect_values(max_pool2d_indices(tensor({1, 1, 3}, {-inf, -inf, -inf}), {.kernel_size = {3}, .stride = 1, .padding = 1}), {0, 0, 1});
}

TEST_F(NnTest, Normalization) {
  const Values in = numbers(12);
  const UOp x = tensor({2, 2, 3}, in);
  Values want;
  for (size_t r = 0; r < 4; ++r) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < 3; ++c) mean += in[r * 3 + c] / 3;
    for (size_t c = 0; c < 3; ++c) variance += (in[r * 3 + c] - mean) * (in[r * 3 + c] - mean) / 3;
    for (size_t c = 0; c < 3; ++c) want.push_back((in[r * 3 + c] - mean) / std::sqrt(variance + 1e-5));
  }
  expect_values(layernorm(x), want);
  const UOp weight = tensor({2}, {2, 3}), bias = tensor({2}, {0.5, -0.5}), mean = tensor({2}, {1, 2}), invstd = tensor({2}, {0.1, 10});
  Values batch;
  for (size_t i = 0; i < 12; ++i) batch.push_back(i / 3 % 2 == 0 ? (in[i] - 1) * 0.1 * 2 + 0.5 : (in[i] - 2) * 10 * 3 - 0.5);
  expect_values(batchnorm(x, weight, bias, mean, invstd), batch);
  EXPECT_EQ(layernorm(counting({4}, DType::float16)).dtype(), DType::float16);
}

TEST_F(NnTest, Attention) {
  const Values q = numbers(8), k = numbers(12), v = numbers(9);
  const UOp uq = tensor({1, 2, 4}, q), uk = tensor({1, 3, 4}, k), uv = tensor({1, 3, 3}, v);
  auto reference = [&](const std::function<bool(size_t, size_t)>& seen) {
    Values out;
    for (size_t i = 0; i < 2; ++i) {
      Values w(3, 0.0);
      double total = 0;
      for (size_t j = 0; j < 3; ++j) {
        double dot = 0;
        for (size_t d = 0; d < 4; ++d) dot += q[i * 4 + d] * k[j * 4 + d];
        w[j] = seen(i, j) ? std::exp(dot / 2) : 0;
        total += w[j];
      }
      for (size_t d = 0; d < 3; ++d) out.push_back((w[0] * v[d] + w[1] * v[3 + d] + w[2] * v[6 + d]) / total);
    }
    return out;
  };
  expect_values(scaled_dot_product_attention(uq, uk, uv), reference([](size_t, size_t) { return true; }));
  expect_values(scaled_dot_product_attention(uq, uk, uv, {.is_causal = true}), reference([](size_t i, size_t j) { return j <= i; }));
  const UOp mask = tensor({2, 3}, {1, 0, 1, 0, 1, 1}, DType::bool_), bias = tensor({2, 3}, {0, -inf, 0, -inf, 0, 0});
  auto masked = reference([](size_t i, size_t j) { return i == 0 ? j != 1 : j != 0; });
  expect_values(scaled_dot_product_attention(uq, uk, uv, {.mask = mask}), masked);
  expect_values(scaled_dot_product_attention(uq, uk, uv, {.mask = bias}), masked);
  EXPECT_THROW(scaled_dot_product_attention(uq, uk, uv, {.mask = mask, .is_causal = true}), ValueError);
  expect_shape(scaled_dot_product_attention(counting({1, 4, 2, 3}), counting({1, 2, 5, 3}), counting({1, 2, 5, 3}), {.enable_gqa = true}),
               "(1, 4, 2, 3)");
}

TEST_F(NnTest, Losses) {
  const Values in = numbers(12, -2, 2);
  const UOp x = tensor({4, 3}, in), y = tensor({4}, {2, 0, 1, 1}, DType::int32);
  const size_t label[] = {2, 0, 1, 1};
  Values losses, smooth;
  for (size_t r = 0; r < 4; ++r) {
    double total = 0, mean = 0;
    for (size_t c = 0; c < 3; ++c) total += std::exp(in[r * 3 + c]);
    for (size_t c = 0; c < 3; ++c) mean += (in[r * 3 + c] - std::log(total)) / 3;
    losses.push_back(std::log(total) - in[r * 3 + label[r]]);
    smooth.push_back(0.9 * losses.back() - 0.1 * mean);
  }
  auto average = [](const Values& v) { return std::accumulate(v.begin(), v.end(), 0.0) / double(v.size()); };
  expect_values(sparse_categorical_crossentropy(x, y), {average(losses)});
  expect_values(sparse_categorical_crossentropy(x, y, -1, 0, Reduction::none), losses);
  expect_values(sparse_categorical_crossentropy(x, y, -1, 0.1), {average(smooth)});
  expect_values(sparse_categorical_crossentropy(x, y, 1), {(losses[0] + losses[1]) / 2});
  expect_values(cross_entropy(x, y), {average(losses)});
  expect_values(cross_entropy(x, y, {}, Reduction::sum, 0.1), {4 * average(smooth)});
  const UOp hot = tensor({4, 3}, {0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0});
  expect_values(cross_entropy(x, hot, {}, Reduction::mean, 0.1), {average(smooth)});
  expect_values(nll_loss(log_softmax(x), y), {average(losses)});
  expect_values(nll_loss(log_softmax(x), y, tensor({3}, {1, 2, 4})), {(4 * losses[0] + losses[1] + 2 * losses[2] + 2 * losses[3]) / 9});
  expect_values(nll_loss(log_softmax(x), y, {}, 1), {(losses[0] + losses[1]) / 2});
  EXPECT_EQ(message_of<ShapeError>([&] { sparse_categorical_crossentropy(x, tensor({3}, {0, 0, 0}, DType::int32)); }),
            "sparse_categorical_crossentropy: the targets have the shape (3,), expects (4,)");
  EXPECT_THROW(cross_entropy(x, counting({4})), DTypeError);
  EXPECT_THROW(cross_entropy(x, y, {}, Reduction::mean, 2), ValueError);

  const UOp p = tensor({2}, {0.25, 0.8}), t = tensor({2}, {0, 1}), logits = tensor({2}, {std::log(0.25 / 0.75), std::log(4.0)});
  const Values bce = {-std::log(0.75), -std::log(0.8)};
  expect_values(binary_crossentropy(p, t, Reduction::none), bce);
  expect_values(binary_crossentropy_logits(logits, t, Reduction::none), bce);
  expect_values(binary_crossentropy_logits(logits, t, Reduction::none, tensor({1}, {3})), {bce[0], 3 * bce[1]});
}

}  // namespace
}  // namespace tinygrad::ops
