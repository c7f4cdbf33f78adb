// What may live how long: temporaries in indices and operands, tensors of global objects, layers' first weights.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

TEST(Temporaries, InIndicesAndOperandsAreKept) {
  const Tensor x = Tensor::arange(12).reshape({3, 4}).realize();
  std::vector<Index> indices;
  indices.push_back(Tensor({2, 0}));
  indices.push_back(Tensor({1, 3}) - 1);
  const std::vector<float> noise(64, -1);  // something else where the temporaries were
  EXPECT_EQ(x.get_item(indices).tolist<int>(), (std::vector<int>{8, 2}));
  std::vector<Operand> operands{Tensor({1, 2, 3, 4}), Tensor({1}) * 5, 2};
  EXPECT_EQ((x[0] + operands[0]).tolist<int>(), (std::vector<int>{1, 3, 5, 7}));
  EXPECT_EQ((x[0] * operands[1] + operands[2]).tolist<int>(), (std::vector<int>{2, 7, 12, 17}));
  const std::optional<Operand> low = Tensor({1, 1, 2, 2});
  EXPECT_EQ(x[0].clamp(low).tolist<int>(), (std::vector<int>{1, 1, 2, 3}));
  Tensor y = x.clone();
  y.set_item(indices, operands[2]);
  EXPECT_EQ(y.tolist<int>(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 2, 9, 10, 11}));
}

TEST(Temporaries, GiveHandlesOfTheirOwnBack) {
  const Tensor& w = Tensor::rand({3}).realize();
  const Tensor& v = (Tensor({1.0f, 2.0f}) * 2).is_param_(false);
  Tensor x = Tensor::zeros({2, 2}).contiguous();
  const Tensor& row = x[1].assign(Tensor({7.0f, 8.0f}));
  const Tensor& corner = x[0].set_item({0}, 5.0f);
  const Tensor& loss = (x * x).sum().backward();
  const std::string& name = Variable("tokens", 1, 8).name();
  const std::vector<float> noise(64, -1);
  EXPECT_EQ(w.numel(), 3);
  EXPECT_EQ(v.tolist(), (std::vector<float>{2, 4}));
  EXPECT_EQ(row.tolist(), (std::vector<float>{7, 8}));
  EXPECT_EQ(corner.tolist(), (std::vector<float>{5, 0}));
  EXPECT_EQ(loss.item(), 25 + 49 + 64);
  EXPECT_EQ(name, "tokens");
}

/// Made before everything that the library makes for itself, and destroyed after it.
struct AtExit {
  std::optional<Tensor> x;
  std::string file;
  ~AtExit() {
    if (!x) return;
    const double sum = (x->matmul(x->T()) + Tensor::rand({32, 32}).floor()).sum().item();
    Tensor y = Tensor::arange(200000).to_float();  // many elements: several threads
    y += 1;
    nn::state::safe_save({{"y", y}, {"x", *x}}, file);
    const auto step = jit([](const Tensor& t) { return (t * 2).softmax(); });
    for (int i = 0; i < 3; ++i) step(*x);
    const bool right =
        sum == 32 * 32 * 32 && nn::state::safe_load(file).at("y").sum().item() > 1e10 && y.log().isfinite().all().item<bool>();
    std::fprintf(stderr, right ? "computed at exit\n" : "wrong at exit\n");
    if (!right) std::_Exit(3);
  }
} at_exit;

TEST(StaticObjectsDeathTest, ComputeWhenTheyAreDestroyed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto file = std::filesystem::temp_directory_path() / ("tg_at_exit_" + std::to_string(::getpid()));
  const auto leave = [&] {
    Tensor::rand({64, 64}).softmax().sum().item();
    at_exit.file = file.string();
    at_exit.x = Tensor::ones({32, 32}).realize();
    std::exit(0);
  };
  EXPECT_EXIT(leave(), testing::ExitedWithCode(0), "computed at exit");
  std::filesystem::remove(file);
}

int64_t kernels_of(const std::function<void()>& f) {
  GlobalCounters::reset();
  f();
  return GlobalCounters::kernel_count;
}

TEST(FreshLayers, MakeTheirStateOnce) {
  Tensor::manual_seed(3);
  const nn::Linear linear(64, 64);
  const Tensor x = Tensor::ones({1, 64}).realize();
  const auto call = jit([&](const Tensor& t) { return linear(t); });
  const std::vector<float> first = call(x).tolist();
  EXPECT_EQ(call(x).tolist(), first);
  EXPECT_EQ(kernels_of([&] { EXPECT_EQ(call(x).tolist(), first); }), 1);
  EXPECT_EQ(linear.weight.tolist(), linear.weight.tolist());

  const auto kernels = kernels_of([&] { linear(x).realize(); });
  EXPECT_EQ(kernels, 1) << "weights are not made again";
}

TEST(FreshLayers, OfEveryKindOnce) {
  const nn::Conv2d conv(2, 3, 3);
  const nn::ConvTranspose2d transposed(3, 2, 3);
  const nn::BatchNorm norm(2);
  const nn::GroupNorm group(1, 2);
  const nn::LayerNorm layer(4);
  const nn::RMSNorm rms(4);
  const nn::Embedding table(10, 4);
  const nn::LSTMCell cell(4, 4);
  const Tensor image = Tensor::rand({1, 2, 4, 4}).realize(), words = Tensor({1, 2}).realize(), row = Tensor::rand({2, 4}).realize();
  const std::vector<std::function<Tensor()>> calls = {
      [&] { return transposed(conv(image)); },
      [&] { return group(norm(image)); },
      [&] { return layer(image); },
      [&] { return rms(row); },
      [&] { return table(words); },
      [&] { return cell(row).first; },
  };
  for (const auto& call : calls) {
    const std::vector<float> values = call().tolist();
    const auto again = kernels_of([&] { EXPECT_EQ(call().tolist(), values); });
    EXPECT_EQ(kernels_of([&] { EXPECT_EQ(call().tolist(), values); }), again);
    const auto step = jit([&](const Tensor& t) { return call() + t; });
    for (int i = 0; i < 3; ++i) step(Tensor({0.f}));
    EXPECT_LE(kernels_of([&] { step(Tensor({0.f})); }), again + 1);
  }
}

TEST(FreshLayers, OfEqualWeightsAreVariablesOfTheirOwn) {
  const nn::LayerNorm a(4), b(4);
  const Tensor x = Tensor({1.f, 2.f, 3.f, 5.f}).realize();
  (a(x) * 2 + b(x)).sum().backward();
  const auto ga = a.weight.grad().tolist(), gb = b.weight.grad().tolist();
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(ga[i], 2 * gb[i], 1e-5);
}

TEST(DefaultDevice, IsTheSameInEachCall) {
  const std::string device = default_device();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Tensor(float(i)).device(), device);
}

}  // namespace
}  // namespace tinygrad
