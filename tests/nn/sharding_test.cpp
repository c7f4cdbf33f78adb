// Jitted functions of tensors on several devices: arguments, state, results, training.
#include <gtest/gtest.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>
#include <tinygrad/jit.h>
#include <tinygrad/mesh.h>
#include <tinygrad/nn.h>
#include <tinygrad/optim.h>
#include <tinygrad/state.h>
#include <tinygrad/tensor.h>

#include "support/temp_folder.h"

namespace tinygrad {
namespace {

using Names = std::vector<std::string>;
const Names two{"CPU", "CPU:1"}, doubled{"CPU", "CPU", "CPU:1", "CPU:1"};

Tensor numbers(const Sizes& shape, int64_t seed) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return ((Tensor::arange(n) * 7 + seed) % 11 - 5).reshape(Extents(shape)).cast(DType::float32).realize();
}

std::vector<float> values(const Tensor& t) { return t.flatten().tolist<float>(); }

TEST(ShardedJit, ArgumentsAndResults) {
  for (const Names& devices : {two, doubled}) {
    const Tensor w = numbers({4, 3}, 1), sharded_w = w.shard(devices).realize();
    const auto f = jit([&](const Tensor& x) { return std::vector<Tensor>{x.matmul(sharded_w).realize(), x.sum({0}).realize()}; });
    for (int i = 0; i < 6; ++i) {
      const Tensor x = numbers({7, 4}, i);
      const std::vector<Tensor> got = f(x.shard(devices, 0).realize());
      EXPECT_EQ(values(got[0]), values(x.matmul(w))) << i;
      EXPECT_EQ(values(got[1]), values(x.sum({0}))) << i;
      EXPECT_EQ(got[0].devices(), devices);
    }
  }
}

TEST(ShardedJit, WritesToWhatItFinds) {
  Tensor total = Tensor::zeros({6, 2}).shard(two, 0).contiguous().realize();
  Tensor plain = Tensor::zeros({6, 2}).contiguous().realize();
  const auto add = jit([&](const Tensor& x) {
    total += x;
    return total.sum().realize();
  });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = numbers({6, 2}, i);
    plain += x;
    EXPECT_EQ(values(add(x.shard(two, 0).realize())), values(plain.sum())) << i;
    EXPECT_EQ(values(total), values(plain)) << i;
  }
}

TEST(ShardedJit, WritesToAnArgument) {
  const auto twice = jit([](Tensor x) {
    x.assign(x * 2 + 1);
    return x.realize();
  });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = numbers({6, 2}, i), sharded = x.shard(two, 0).clone().realize();
    twice(sharded);
    EXPECT_EQ(values(sharded), values(x * 2 + 1)) << i;
  }
}

TEST(ShardedJit, CannotBeSaved) {
  const test::TempFolder folder;
  const auto f = jit([](const Tensor& x) { return (x + 1).realize(); });
  for (int i = 0; i < 3; ++i) f(numbers({4}, i).shard(two, 0).realize());
  EXPECT_THROW(f.save(folder.path("call")), ValueError);
}

/// The losses of some steps, each a number of shards that add up in their order.
std::vector<float> losses(const Names& devices, bool jitted) {
  Tensor::manual_seed(7);
  const Context training{{.training = true}};
  nn::Linear first(6, 16), second(16, 3);
  std::vector<Tensor> parameters{first.weight, first.bias, second.weight, second.bias};
  const bool is_sharded = devices.size() > 1;
  if (is_sharded)
    for (Tensor& p : parameters) p.shard_(devices);
  nn::optim::Adam adam(parameters, {.lr = 0.01});
  const auto step = [&](const Tensor& x, const Tensor& y) {
    adam.zero_grad();
    const Tensor loss = (second(first(x).relu()) - y).square().mean();
    loss.backward();
    adam.step();
    return loss.realize();
  };
  const auto fast = jit(step);
  std::vector<float> out;
  for (int i = 0; i < 6; ++i) {
    Tensor x = Tensor::rand({16, 6}), y = Tensor::rand({16, 3});
    if (is_sharded) x = x.shard(devices, 0), y = y.shard(devices, 0);
    x.realize();
    y.realize();
    out.push_back((jitted ? fast(x, y) : step(x, y)).item<float>());
  }
  return out;
}

TEST(ShardedTraining, GradientsOfPlainTensorsComeBackToThem) {
  const Tensor x = numbers({6, 4}, 1), w = numbers({4, 3}, 2);
  const auto expected = x.matmul(w).relu().sum().gradient({w});
  const auto got = x.shard(two, 0).matmul(w).relu().sum().gradient({w});
  EXPECT_EQ(got[0].device(), "CPU");
  EXPECT_EQ(values(got[0]), values(expected[0]));
}

TEST(ShardedTraining, StateIsDividedAsItsParameter) {
  const Context training{{.training = true}};
  Tensor p = numbers({8, 4}, 1).shard(two, 0).clone(), plain = numbers({8, 4}, 1).clone();
  nn::optim::Adam sharded({{p}}, {.lr = 0.1}), single({{plain}}, {.lr = 0.1});
  for (int i = 0; i < 3; ++i) {
    for (auto& [t, optimizer] : {std::pair{&p, &sharded}, std::pair{&plain, &single}}) {
      optimizer->zero_grad();
      (t->square() * numbers({8, 4}, 3)).sum().backward();
      optimizer->step();
    }
    EXPECT_EQ(values(p), values(plain)) << i;
  }
  EXPECT_NE(p.placement().find("axis 0 over 2"), std::string::npos);
  for (const auto& [name, t] : nn::state::get_state_dict(sharded))
    if (t.shape() == p.shape()) {
      EXPECT_EQ(t.placement(), p.placement()) << name;
    }
}

TEST(ShardedJit, TrainsToTheSameBitsOnAnyNumberOfDevices) {
  const Names all[] = {{"CPU", "CPU", "CPU", "CPU"},
                       {"CPU", "CPU", "CPU:1", "CPU:1"},
                       {"CPU:1", "CPU:1", "CPU:1", "CPU:1"},
                       {"CPU", "CPU:1", "CPU:2", "CPU:3"}};
  const std::vector<float> expected = losses(all[0], false), plain = losses({"CPU"}, false);
  for (const Names& devices : all)
    for (bool jitted : {false, true}) EXPECT_EQ(losses(devices, jitted), expected) << devices[1] << jitted;
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], expected[i], 1e-6f);
}

}  // namespace
}  // namespace tinygrad
