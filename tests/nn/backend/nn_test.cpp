// Layers, optimizers and state dicts on the CPU.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

void expect_near(const Tensor& got, const Floats& want, float tolerance = 1e-5f) {
  const Floats values = got.tolist();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], tolerance) << "element " << i;
}

struct Net : nn::Module {
  nn::Linear l1{4, 3}, l2{3, 2, {.bias = false}};
  std::vector<nn::BatchNorm> norms{nn::BatchNorm(3), nn::BatchNorm(2)};
  Tensor operator()(const Tensor& x) const { return norms[1](l2(norms[0](l1(x)).relu())); }
  TG_FIELDS(l1, l2, norms)
};

TEST(Nn, NamesOfTheStateDict) {
  const Net net;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : nn::state::get_state_dict(net)) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"l1.bias", "l1.weight", "l2.weight", "norms.0.bias", "norms.0.num_batches_tracked",
                                      "norms.0.running_mean", "norms.0.running_var", "norms.0.weight", "norms.1.bias",
                                      "norms.1.num_batches_tracked", "norms.1.running_mean", "norms.1.running_var", "norms.1.weight"}));
}

TEST(Nn, EqualParametersAreUpdatedApart) {
  const Context training{{.training = true}};
  const Tensor a = Tensor::ones({2}), b = Tensor::ones({2});
  nn::optim::SGD optimizer(std::vector<Tensor>{a, b}, {.lr = 1.0});
  (a * 2 + b * 3).sum().backward();
  optimizer.step();
  expect_near(a, {-1, -1});
  expect_near(b, {-2, -2});
}

TEST(Nn, RunningStatisticsAreNotTheWeights) {
  const Context training{{.training = true}};
  const nn::BatchNorm norm(1);
  nn::optim::SGD optimizer(nn::state::get_parameters(norm), {.lr = 0.0});
  norm(Tensor({{1.0}, {3.0}})).sum().backward();
  optimizer.step();
  expect_near(norm.weight, {1});
  expect_near(norm.bias, {0});
  expect_near(norm.running_mean, {0.2f});
  expect_near(norm.running_var, {1.1f});
}

TEST(Nn, BatchNormTracksStatistics) {
  const nn::BatchNorm norm(2);
  const Tensor x({{1.0, 10.0}, {3.0, 30.0}});
  expect_near(norm(x), {1, 10, 3, 30}, 1e-3f);
  {
    const Context training{{.training = true}};
    expect_near(norm(x), {-1, -1, 1, 1}, 1e-3f);
  }
  expect_near(norm.running_mean, {0.2f, 2});
  expect_near(norm.running_var, {0.9f + 0.2f, 0.9f + 20});
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 1);
}

TEST(Nn, LayerNormAndEmbedding) {
  const nn::LayerNorm norm(2);
  expect_near(norm(Tensor({{1.0, 3.0}, {10.0, 30.0}})), {-1, 1, -1, 1}, 1e-3f);
  EXPECT_THROW(norm(Tensor({1.0, 2.0, 3.0})), ShapeError);
  const nn::Embedding table(5, 3);
  table.weight.realize();
  const Floats rows = table.weight.tolist(), got = table(Tensor({4, 1})).tolist();
  EXPECT_EQ(got, (Floats{rows[12], rows[13], rows[14], rows[3], rows[4], rows[5]}));
}

TEST(Nn, ConvIsACorrelation) {
  nn::Conv2d conv(1, 1, 2, {.padding = {1}, .bias = false});
  conv.weight = Tensor({1.0, 2.0, 3.0, 4.0}).reshape({1, 1, 2, 2});
  const Tensor x = Tensor({1.0, 2.0, 3.0, 4.0}).reshape({1, 1, 2, 2});
  EXPECT_EQ(conv(x).tolist(), (Floats{4, 11, 6, 14, 30, 14, 6, 11, 4}));
  EXPECT_THROW(nn::Conv2d(3, 4, 3, {.groups = 2}), ValueError);
}

TEST(Optim, Mistakes) {
  const Tensor p({1.0});
  nn::optim::SGD opt(std::vector<Tensor>{p});
  p.sum().backward();
  EXPECT_THROW(opt.step(), ValueError);
  const Context training{{.training = true}};
  opt.step();
  opt.zero_grad();
  EXPECT_THROW(opt.step(), ValueError);
}

TEST(Optim, ANetLearns) {
  const Context training{{.training = true}};
  Tensor::manual_seed(3);
  const Tensor x = Tensor::randn({64, 4}).realize(), y = (x.sum(1) > 0).cast(DType::int32).realize();
  const Net net;
  nn::optim::Adam opt(nn::state::get_parameters(net), {.lr = 0.05});
  double first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    opt.zero_grad();
    const Tensor loss = net(x).sparse_categorical_crossentropy(y);
    loss.backward();
    opt.step();
    last = loss.item();
    if (i == 0) first = last;
  }
  EXPECT_LT(last, 0.4 * first);
  EXPECT_EQ(net.norms[0].num_batches_tracked.item<int>(), 60);
}

}  // namespace
}  // namespace tinygrad
