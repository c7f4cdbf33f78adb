// Networks of the apps trained with eight shards: the same bits on any number of devices. CMake has mpirun start the same with ranks.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

#include "models/gpt2.h"
#include "models/mnist_net.h"
#include "models/resnet.h"
#include "support/test_scale.h"

namespace tinygrad::test {

namespace {

using Names = std::vector<std::string>;
constexpr int shards = 8;

/// `count` devices, of this process or of as many ranks, neighbours of the shards on each.
Names spread_over(int count) {
  Names out;
  for (int s = 0; s < shards; ++s)
    out.push_back(canonical_device((world_size() > 1 ? "CPU@" : "CPU:") + std::to_string(s * count / shards)));
  return out;
}

/// Losses of some steps.
template <class Net>
std::vector<float> losses(const Names& devices, std::shared_ptr<Net> net, const Tensor& inputs, const Tensor& labels, int steps) {
  for (auto [name, weight] : nn::state::get_state_dict(*net)) weight.shard_(devices);
  nn::optim::SGD optimizer(nn::state::get_parameters(*net), {.lr = 0.02, .momentum = 0.9});
  const auto step = jit([&](const Tensor& x, const Tensor& y) {
    const Context training{{.training = true}};
    optimizer.zero_grad();
    const Tensor scores = (*net)(x);
    Tensor loss = scores.flatten(0, -2).sparse_categorical_crossentropy(y.flatten());
    loss.backward();
    optimizer.step();
    return loss;
  });
  std::vector<float> out;
  for (int i = 0; i < steps; ++i) out.push_back(step(inputs.shard(devices, 0), labels.shard(devices, 0)).template item<float>());
  return out;
}

/// The same for all numbers of devices as with all shards on one.
void expect_same_bits(const std::function<std::vector<float>(const Names&)>& train, const std::vector<int>& counts) {
  const std::vector<float> expected = train(Names(shards, "CPU"));
  EXPECT_NE(expected.front(), expected.back());
  if (world_size() > 1) {
    EXPECT_EQ(train(spread_over(world_size())), expected);
    return;
  }
  for (const int count : counts) EXPECT_EQ(train(spread_over(count)), expected) << count << " devices";
}

// `make test-full` takes more steps, and all numbers of devices.
int steps(int usually) { return test_scale() > 1 ? 20 : usually; }
std::vector<int> all_or(std::vector<int> usually) { return test_scale() > 1 ? std::vector<int>{2, 4, 8} : std::move(usually); }

}  // namespace

TEST(ShardedTraining, OfMnist) {
  expect_same_bits(
      [](const Names& devices) {
        Tensor::manual_seed(1);
        const auto net = std::make_shared<apps::MnistNet>();
        const Tensor x = (Tensor::rand({64, 1, 28, 28}) * 255).realize(), y = Tensor::randint({64}, 0, 10).realize();
        return losses(devices, net, x, y, steps(6));
      },
      all_or({2, 4, 8}));
}

TEST(ShardedTraining, OfResNet18) {
  expect_same_bits(
      [](const Names& devices) {
        Tensor::manual_seed(2);
        const auto net = std::make_shared<apps::ResNet18>();
        const Tensor x = Tensor::randn({16, 3, 32, 32}).realize(), y = Tensor::randint({16}, 0, 10).realize();
        return losses(devices, net, x, y, steps(3));
      },
      all_or({2, 8}));
}

TEST(ShardedTraining, OfGpt2) {
  expect_same_bits(
      [](const Names& devices) {
        Tensor::manual_seed(3);
        const auto net = std::make_shared<apps::gpt2::Gpt2>(2);
        const Tensor x = Tensor::randint({8, 16}, 0, 500).realize(), y = Tensor::randint({8, 16}, 0, 500).realize();
        return losses(devices, net, x, y, steps(2));
      },
      all_or({2}));
}

}  // namespace tinygrad::test
