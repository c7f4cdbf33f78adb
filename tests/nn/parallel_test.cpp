// Modules on several devices: copies, parts that are gathered for their readers, parts of layers.
#include <cstdlib>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include <tinygrad/clip_grad.h>
#include <tinygrad/comm.h>
#include <tinygrad/context.h>
#include <tinygrad/counters.h>
#include <tinygrad/device.h>
#include <tinygrad/errors.h>
#include <tinygrad/jit.h>
#include <tinygrad/nn.h>
#include <tinygrad/optim.h>
#include <tinygrad/parallel.h>
#include <tinygrad/simulate.h>
#include <tinygrad/state.h>
#include <tinygrad/tensor.h>

namespace tinygrad {
namespace {

using Names = std::vector<std::string>;
using Floats = std::vector<float>;
namespace parallel = nn::parallel;
using OptimizerOf = std::function<std::unique_ptr<nn::optim::Optimizer>(const std::vector<Tensor>&)>;

/// Four shards, each on a rank where there are several.
Names four_shards() {
  Names out;
  const int ranks = world_size();
  for (int s = 0; s < 4; ++s)
    out.push_back(canonical_device(ranks > 1 ? "CPU@" + std::to_string(s * ranks / 4) : "CPU:" + std::to_string(s / 2)));
  return out;
}

struct Net : nn::Module {
  nn::Embedding names{50, 8};
  nn::Conv2d conv{1, 4, 3, {.padding = {1}, .bias = false}};  // with one Adam would follow noise: the norm behind it takes it away
  nn::BatchNorm norm{4};
  nn::Linear first{4 * 8, 19}, second{19, 8};
  Tensor operator()(const Tensor& numbers) const {
    Tensor x = names(numbers).reshape({-1, 1, 4, 8});
    x = norm(conv(x)).relu().mean({2}).flatten(1);
    return second(first(x).tanh()).matmul(names.weight.transpose());
  }
  TG_FIELDS(names, conv, norm, first, second)
};

const OptimizerOf adam = [](const std::vector<Tensor>& p) {
  return std::make_unique<nn::optim::Adam>(p, nn::optim::AdamOptions{.lr = 0.01});
};
const OptimizerOf sgd = [](const std::vector<Tensor>& p) { return std::make_unique<nn::optim::SGD>(p, nn::optim::SGDOptions{.lr = 0.1}); };
const OptimizerOf lamb = [](const std::vector<Tensor>& p) {
  return std::make_unique<nn::optim::LAMB>(p, nn::optim::LAMBOptions{.lr = 0.01, .weight_decay = 0.1});
};
const OptimizerOf muon = [](const std::vector<Tensor>& p) {
  return std::make_unique<nn::optim::Muon>(p, nn::optim::MuonOptions{.lr = 0.02});
};

struct Trained {
  Floats losses, weights;
};

/// Some steps; `place` says where the module is, `place_state` where the optimizer's state is.
Trained train(const Names& devices, const OptimizerOf& optimizer_of, const std::function<void(const Net&)>& place,
              const std::function<void(const nn::optim::Optimizer&)>& place_state = {}, bool jitted = false, bool clips = false) {
  Tensor::manual_seed(5);
  const Context training{{.training = true}};
  const Net net;
  Tensor::realize(nn::state::get_parameters(net));
  place(net);
  const auto optimizer = optimizer_of(nn::state::get_parameters(net));
  if (place_state) place_state(*optimizer);
  const auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer->zero_grad();
    const Tensor loss = net(x).sparse_categorical_crossentropy(y);
    loss.backward();
    if (clips) nn::utils::clip_grad_norm_(nn::state::get_parameters(net), 0.05);
    optimizer->step();
    return loss.realize();
  };
  const auto fast = jit(step);
  Trained out;
  for (int i = 0; i < 5; ++i) {
    Tensor x = Tensor::randint({8, 4}, 0, 50), y = Tensor::randint({8}, 0, 50);
    if (devices.size() > 1) x = x.shard(devices, 0), y = y.shard(devices, 0);
    Tensor::realize(std::vector{x, y});
    out.losses.push_back((jitted ? fast(x, y) : step(x, y)).item<float>());
  }
  for (const auto& [name, t] : nn::state::get_state_dict(net))
    for (const float v : t.cast(DType::float32).flatten().tolist<float>()) out.weights.push_back(v);
  return out;
}

void expect_near(const Trained& got, const Trained& expected, float tolerance) {
  ASSERT_EQ(got.weights.size(), expected.weights.size());
  for (size_t i = 0; i < got.losses.size(); ++i) EXPECT_NEAR(got.losses[i], expected.losses[i], tolerance) << i;
  for (size_t i = 0; i < got.weights.size(); ++i) ASSERT_NEAR(got.weights[i], expected.weights[i], tolerance) << i;
}

const std::function<void(const Net&)> nowhere = [](const Net&) {};

}  // namespace

TEST(Parallel, FullyShardedTrainsAsCopiesDo) {
  const Names devices = four_shards();
  for (const auto& [name, optimizer] : {std::pair{"adam", adam}, {"sgd", sgd}, {"lamb", lamb}, {"muon", muon}}) {
    SCOPED_TRACE(name);
    const Trained copies = train(devices, optimizer, [&](const Net& net) { parallel::replicate(net, devices); });
    expect_near(train({"CPU"}, optimizer, nowhere), copies, 2e-4f);
    for (const bool jitted : {false, true})
      expect_near(train(devices, optimizer, [&](const Net& net) { parallel::fully_shard(net, devices); }, {}, jitted), copies, 1e-6f);
  }
}

TEST(Parallel, StateInPartsTrainsAsCopiesDo) {
  const Names devices = four_shards();
  const auto replicate = [&](const Net& net) { parallel::replicate(net, devices); };
  for (const auto& [name, optimizer] : {std::pair{"adam", adam}, {"lamb", lamb}}) {
    SCOPED_TRACE(name);
    const Trained copies = train(devices, optimizer, replicate);
    for (const bool jitted : {false, true})
      expect_near(train(devices, optimizer, replicate, [](const auto& o) { parallel::shard_state(o); }, jitted), copies, 1e-6f);
  }
}

TEST(Parallel, GradientsAreClippedAlike) {
  const Names devices = four_shards();
  const Trained copies = train(devices, adam, [&](const Net& net) { parallel::replicate(net, devices); }, {}, false, true);
  expect_near(train(devices, adam, [&](const Net& net) { parallel::fully_shard(net, devices); }, {}, false, true), copies, 1e-6f);
}

TEST(Parallel, EverythingIsInParts) {
  const Context training{{.training = true}};
  const Names devices = four_shards();
  const Net net;
  parallel::fully_shard(net, devices);
  nn::optim::Adam optimizer(nn::state::get_parameters(net));
  const auto step = [&] {
    optimizer.zero_grad();
    net(Tensor::randint({8, 4}, 0, 50).shard(devices, 0)).square().mean().backward();
    optimizer.step();
  };
  step();
  for (const auto& [name, p] : nn::state::get_state_dict(net)) {
    if (!p.is_param()) continue;
    EXPECT_NE(p.placement().find("gathered by readers"), std::string::npos) << name << p.placement();
    EXPECT_NE(p.grad().placement().find("over 4"), std::string::npos) << name << p.grad().placement();
    EXPECT_EQ(p.grad().placement().find("gathered"), std::string::npos) << name;
  }
  for (const Tensor& state : optimizer.m) EXPECT_NE(state.placement().find("over 4"), std::string::npos) << state.placement();
  EXPECT_NE(net.norm.running_mean.placement().find("copies"), std::string::npos);
}

TEST(Parallel, MemoryIsThatOfParts) {
  const Context training{{.training = true}};
  const int ranks = world_size();
  Names devices = four_shards();
  if (ranks == 1) devices = {"CPU", "CPU:1", "CPU:2", "CPU:3"};
  // What one rank has, or all devices of a process have together, in copies of the whole.
  const auto used = [&](const std::function<void(const nn::Module&)>& place) {
    const int64_t before = GlobalCounters::mem_used;
    struct Layers : nn::Module {
      std::vector<nn::Linear> all;
      TG_FIELDS(all)
    } net;
    for (int i = 0; i < 6; ++i) net.all.emplace_back(256, 256);
    place(net);
    nn::optim::Adam optimizer(nn::state::get_parameters(net));
    optimizer.zero_grad();
    Tensor x = Tensor::rand({8, 256}).shard(devices, 0);
    for (const nn::Linear& layer : net.all) x = layer(x).tanh();
    x.square().mean().backward();
    std::vector<Tensor> all = optimizer.schedule_step();
    for (const Tensor& p : optimizer.params()) all.push_back(p.grad());
    Tensor::realize(all);
    x = {};
    return double(GlobalCounters::mem_used - before) / (4.0 * 4 * 6 * (256 * 256 + 256));  // weight, gradient, m, v
  };
  const double copies = used([&](const nn::Module& net) { parallel::replicate(net, devices); });
  const double parts = used([&](const nn::Module& net) { parallel::fully_shard(net, devices); });
  EXPECT_NEAR(copies, ranks > 1 ? 1 : 4, 0.1);
  EXPECT_LE(parts, 1.15 * copies / (ranks > 1 ? ranks : 4));
}

// Of deep networks no more than a few layers are whole at a time, and each layer is gathered for the way back once more.
TEST(Parallel, GathersAgainInsteadOfKeeping) {
  const Context without_devices{{.dev = "NULL", .training = true}};
  constexpr int ranks = 4, layers = 12;
  constexpr double layer = 4.0 * (256 * 256 + 256);
  Names devices;
  for (int r = 0; r < ranks; ++r) devices.push_back("NULL:" + std::to_string(r));
  const Link link{0, 1e9};
  const auto simulated = [&](const std::function<void(const nn::Module&)>& place) {
    struct Layers : nn::Module {
      std::vector<nn::Linear> all;
      TG_FIELDS(all)
    } net;
    for (int i = 0; i < layers; ++i) net.all.emplace_back(256, 256);
    place(net);
    nn::optim::SGD optimizer(nn::state::get_parameters(net), {.lr = 0.1});
    Tensor x = Tensor::empty({4, 256}).shard(devices, 0).realize();
    for (const nn::Linear& l : net.all) x = l(x).tanh();
    x.square().mean().backward();
    return simulate(optimizer.schedule_step(), {.ranks_per_node = 1, .within = link, .between = link});
  };
  const Simulation copies = simulated([&](const nn::Module& net) { parallel::replicate(net, devices); });
  const Simulation parts = simulated([&](const nn::Module& net) { parallel::fully_shard(net, devices); });
  EXPECT_GT(double(copies.memory_per_rank), layers * layer);
  EXPECT_LT(double(parts.memory_per_rank), layers * layer / ranks + 7 * layer);  // what was gathered, and terms of a sum
  // Of others each gets 3/4 of a layer twice, but of the last ones once, and terms of its part of a gradient.
  EXPECT_NEAR(double(parts.bytes_received), (2 * layers - 3 + layers) * layer * 3 / 4, 1.5 * layer);
  EXPECT_NEAR(double(copies.bytes_received), 2 * layers * layer * 3 / 4, 0.1 * layer);
}

TEST(Parallel, WritesAndReadsParts) {
  const Names devices = four_shards();
  const Mesh mesh(devices);
  for (const int axis : {0, 1}) {
    Tensor w = (Tensor::arange(35).reshape({7, 5}) + 1).cast(DType::float32);
    Floats expected = w.flatten().tolist<float>();
    w.shard_(mesh, {{"shards", axis, true}}).realize();
    EXPECT_EQ(w.flatten().tolist<float>(), expected);
    EXPECT_EQ((w + 1).placement().find("over"), std::string::npos) << (w + 1).placement();
    w[{Slice{.start = 2, .stop = 6}, Slice{.start = 1}}].assign(Tensor::zeros({4, 4}) - 1).realize();
    for (int i = 2; i < 6; ++i)
      for (int j = 1; j < 5; ++j) expected[size_t(i * 5 + j)] = -1;
    EXPECT_EQ(w.flatten().tolist<float>(), expected);
    w.assign(w * 2 + w.sum({0}));
    Floats sums(5, 0);
    for (size_t i = 0; i < 35; ++i) sums[i % 5] += expected[i];
    for (size_t i = 0; i < 35; ++i) expected[i] = expected[i] * 2 + sums[i % 5];
    EXPECT_EQ(w.flatten().tolist<float>(), expected);
    EXPECT_NE(w.placement().find("gathered by readers"), std::string::npos) << w.placement();
    const Tensor copy = w.clone().realize();
    EXPECT_EQ(copy.placement(), w.placement());
    EXPECT_EQ(w.transpose().matmul(Tensor::ones({7})).tolist<float>(), w.to("CPU").sum({0}).tolist<float>());
    EXPECT_EQ(w.sum().item<float>(), w.to("CPU").sum().item<float>());
  }
}

TEST(Parallel, LoadsIntoParts) {
  const Names devices = four_shards();
  Tensor::manual_seed(9);
  const Net net, other;
  const nn::state::StateDict saved = nn::state::get_state_dict(net);
  parallel::fully_shard(other, devices);
  nn::state::load_state_dict(other, saved, {.verbose = false});
  for (const auto& [name, t] : nn::state::get_state_dict(other)) {
    EXPECT_EQ(t.cast(DType::float32).flatten().tolist<float>(), saved.at(name).cast(DType::float32).flatten().tolist<float>()) << name;
    if (t.is_param()) {
      EXPECT_NE(t.placement().find("gathered by readers"), std::string::npos) << name;
    }
  }
}

TEST(Parallel, TensorsWithTwoNamesAreOne) {
  struct Tied : nn::Module {
    nn::Embedding in{9, 4};
    nn::Linear out{4, 9, {.bias = false}}, again;
    Tied() { again = out; }
    TG_FIELDS(in, out, again)
  } net;
  net.out.weight = net.in.weight;
  parallel::fully_shard(net, {"CPU", "CPU:1"});
  EXPECT_EQ(net.out.weight.placement(), net.in.weight.placement());
  EXPECT_NE(net.again.weight.placement().find("gathered by readers"), std::string::npos);
  // What cannot be moved leaves all as it was.
  struct Mixed : nn::Module {
    nn::Linear first{4, 4}, second{4, 4};
    TG_FIELDS(first, second)
  } mixed;
  parallel::replicate(mixed.second, {"CPU", "CPU:1"});
  EXPECT_THROW(parallel::fully_shard(mixed, {"CPU", "CPU:1", "CPU:2"}), ValueError);
  EXPECT_EQ(mixed.first.weight.devices(), Names{"CPU"});
}

TEST(Parallel, LayersInParts) {
  const Names devices = four_shards();
  const Mesh mesh(devices, {{"data", 2}, {"model", 2}});
  for (const bool fully : {false, true}) {
    Tensor::manual_seed(3);
    struct Two : nn::Module {
      nn::Linear up{6, 10}, down{10, 4};
      Tensor operator()(const Tensor& x) const { return down(up(x).relu()); }
      TG_FIELDS(up, down)
    } net, plain;
    nn::state::load_state_dict(plain, nn::state::get_state_dict(net), {.verbose = false});
    parallel::shard_outputs(net.up, mesh, "model");
    parallel::shard_inputs(net.down, mesh, "model");
    if (fully) parallel::fully_shard(net, mesh, "data");
    const Tensor x = Tensor::rand({8, 6}).realize(), there = x.shard(mesh, {{"data", 0}});
    EXPECT_NE(net.up(there).placement().find("axis 1 over 2"), std::string::npos) << net.up(there).placement();
    const Tensor got = net(there), expected = plain(x);
    EXPECT_NE(got.placement().find("axis 0 over 2"), std::string::npos) << got.placement();
    const auto near = [](const Tensor& a, const Tensor& b) { EXPECT_LT((a.to("CPU") - b).abs().max().item<float>(), 1e-5f); };
    near(got, expected);
    got.square().sum().backward();
    expected.square().sum().backward();
    const auto mine = nn::state::get_state_dict(net), theirs = nn::state::get_state_dict(plain);
    for (const auto& [name, t] : mine) near(t.grad(), theirs.at(name).grad());
  }
}

// CMake has mpirun start it, so that it leaves the others of a rank that ends alone.
TEST(Parallel, WhatFollowsALostRankIsAnError) {
  if (world_size() == 1) GTEST_SKIP() << "one rank";
  const Context training{{.training = true}};
  Names devices;
  for (int r = 0; r < world_size(); ++r) devices.push_back("CPU@" + std::to_string(r));
  const nn::Linear layer(64, 64);
  parallel::fully_shard(layer, devices);
  nn::optim::Adam optimizer(nn::state::get_parameters(layer));
  const Tensor x = Tensor::ones({4 * world_size(), 64}).shard(devices, 0).realize();
  const auto step = [&] {
    optimizer.zero_grad();
    const Tensor loss = layer(x).square().mean();
    loss.backward();
    optimizer.step();
    return loss.item<float>();
  };
  step();
  step();
  if (rank() + 1 == world_size()) std::exit(0);
  EXPECT_THROW(step(), CommError);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(step(), Error) << i;  // what it would have written is lost
  EXPECT_THROW((x + 1).sum().item<float>(), CommError);
}

TEST(Parallel, RefusesWhatCannotBe) {
  const nn::Linear layer(4, 4);
  nn::optim::Adam on_one(nn::state::get_parameters(layer));
  EXPECT_THROW(parallel::shard_state(on_one), ValueError);
  EXPECT_THROW(parallel::fully_shard(layer, Mesh({"CPU", "CPU:1"}), "data"), ValueError);
  parallel::fully_shard(layer, {"CPU", "CPU:1"});
  EXPECT_THROW(parallel::fully_shard(layer, {"CPU", "CPU:1"}), ValueError);
  EXPECT_THROW(parallel::fully_shard(layer, {"CPU", "CPU:1", "CPU:2"}), ValueError);
  const nn::Linear copies(4, 4);
  parallel::replicate(copies, {"CPU", "CPU:1"});
  nn::optim::Adam fused(nn::state::get_parameters(copies), {.fused = true});
  EXPECT_THROW(parallel::shard_state(fused), ValueError);
}

}  // namespace tinygrad
