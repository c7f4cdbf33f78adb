// What devices may have beside memory and kernels: how graphs are made, devices that are lost, ways to each other. What comes of it on each
// device is in device_ways_test.cpp.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

#include "base/profile.h"
#include "tensor/backend/fake_hardware.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
using test::Hardware;

class DeviceFeatures : public testing::Test {
 protected:
  DeviceFeatures() { test::register_fake_hardware(); }
  ~DeviceFeatures() override { Hardware::reset(); }

  Hardware& hardware_ = Hardware::reset();
  Context on_device_{{.dev = "FAKEHW"}};
};

/// A chain of `n` kernels.
Tensor chain(const Tensor& x, int n) {
  Tensor y = x;
  for (int i = 0; i < n; ++i) y = (y + 1).realize();
  return y;
}

TEST_F(DeviceFeatures, ReplaysAreGraphs) {
  hardware_.graphs = true;
  Context batches{{.jit_batch_size = 2}};
  const auto f = jit([](const Tensor& x) { return chain(x, 10); });
  const Tensor a({1.0f, 2.0f}), b({5.0f, 6.0f});
  for (int i = 0; i < 6; ++i) {
    const Tensor& x = i % 2 ? a : b;
    EXPECT_EQ(f(x).tolist(), i % 2 ? (Floats{11, 12}) : (Floats{15, 16})) << i;
  }
  EXPECT_EQ(hardware_.graph_sizes, (std::vector<size_t>{2, 4, 4}));
  EXPECT_EQ(hardware_.graphs_made, 3);
  EXPECT_EQ(hardware_.graph_runs % 3, 0);
  // The first launch reads the argument and the last writes the result; nothing else moves.
  for (size_t run = 3; run + 2 < hardware_.changed.size(); run += 3) {
    EXPECT_EQ(hardware_.changed[run], (std::vector<uint32_t>{0}));
    EXPECT_TRUE(hardware_.changed[run + 1].empty());
  }
}

/// The host looks at indices between two graphs, before anything that lasts is written.
TEST_F(DeviceFeatures, GraphsEndWhereIndicesAreLookedAt) {
  const Context check{{.check_oob = true}};
  for (const bool async : {false, true}) {
    hardware_.graphs = true;
    hardware_.async = async;
    const Tensor words = Tensor::arange(8).reshape({4, 2}).to_float().realize(), places = Tensor({{0.0, 0.5}, {1.0, 1.5}}).realize();
    Tensor sum = Tensor::zeros({1, 2}).contiguous().realize();
    const auto f = jit([&](const Tensor& word, const Tensor& place) {
      const Tensor h = chain(words[word] + places[place], 4);
      sum += h;
      return h;
    });
    const auto call = [&](int word, int place) { return f(Tensor({word}).realize(), Tensor({place}).realize()).tolist(); };
    hardware_.graph_sizes.clear();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(call(i, 1), (Floats{2 * float(i) + 5, 2 * float(i) + 6.5f})) << async;
    ASSERT_TRUE(f.captured());
    EXPECT_EQ(hardware_.graph_sizes, (std::vector<size_t>{hardware_.graph_sizes.at(0), 2}));  // what computes and looks, and what lasts
    const Floats before = sum.tolist();
    EXPECT_THROW(call(4, 0), IndexError);
    EXPECT_THROW(call(0, -3), IndexError);
    EXPECT_EQ(sum.tolist(), before) << async;
    EXPECT_EQ(call(0, 0), (Floats{4, 5.5}));
    EXPECT_EQ(sum.tolist(), (Floats{before[0] + 4, before[1] + 5.5f})) << async;
    Hardware::reset();
  }
}

TEST_F(DeviceFeatures, GraphsSeeVariables) {
  hardware_.graphs = true;
  const Variable n("n", 1, 8);
  const auto f = jit([&](const Tensor& x) { return (x + 3).contiguous().sum(); });
  const Tensor all = Tensor::arange(8).cast(DType::float32).contiguous().realize();
  for (int64_t k : {3, 4, 5, 2, 8}) EXPECT_EQ(f(all[{Slice{.stop = n.bind(k)}}]).item(), double(k * (k + 5)) / 2) << k;
  EXPECT_GT(hardware_.graph_runs, 0);
}

TEST_F(DeviceFeatures, WithoutGraphsWhereNotWanted) {
  hardware_.graphs = true;
  {
    Context off{{.jit = 2}};
    const auto f = jit([](const Tensor& x) { return chain(x, 4); });
    for (int i = 0; i < 4; ++i) EXPECT_EQ(f(Tensor({1.0f})).item(), 5);
    EXPECT_EQ(hardware_.graphs_made, 0);
  }
  hardware_.declines_graphs = true;
  const auto g = jit([](const Tensor& x) { return chain(x, 4); });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(g(Tensor({1.0f})).item(), 5);
  EXPECT_EQ(hardware_.graph_runs, 0);
}

TEST_F(DeviceFeatures, CountersAreTheSameWithGraphs) {
  const auto count = [&](bool graphs) {
    hardware_.graphs = graphs;
    const auto f = jit([](const Tensor& x) { return chain(x, 5); });
    const Tensor x({1.0f, 2.0f});
    for (int i = 0; i < 3; ++i) f(x);
    GlobalCounters::reset();
    const uint64_t before = device_statistics("FAKEHW").kernels;
    f(x);
    EXPECT_EQ(device_statistics("FAKEHW").kernels - before, 5u);
    return std::vector<uint64_t>{GlobalCounters::kernel_count, GlobalCounters::global_ops, GlobalCounters::global_mem};
  };
  EXPECT_EQ(count(false), count(true));
}

TEST_F(DeviceFeatures, DeviceLostBetweenTwoLaunches) {
  const Tensor x = Tensor({1.0f, 2.0f}).contiguous().realize();
  const Tensor twice = (Tensor::eye(32) * 2).contiguous().realize();
  Tensor lazy = twice;
  for (int i = 0; i < 3; ++i) lazy = lazy.matmul(twice);  // products are kernels of their own
  hardware_.launches = 0;
  hardware_.lose_when_failing = true;
  hardware_.fail_in = 1;
  EXPECT_THROW(lazy.realize(), DeviceError);
  EXPECT_THROW((x + 1).realize(), DeviceError) << "it is gone";
  EXPECT_EQ((Tensor({1.0f}, {.device = "CPU"}) + 1).item(), 2) << "others are not";
  EXPECT_EQ(hardware_.launches, 3) << "two of the three products, and that";
  hardware_.lost = false;
  EXPECT_TRUE((lazy == Tensor::eye(32) * 16).all().item()) << "nothing was half done: it is still lazy";
  EXPECT_EQ(x.tolist(), (Floats{1, 2}));
}

TEST_F(DeviceFeatures, CopiesBetweenPeersDoNotGoThroughTheHost) {
  for (const bool async : {false, true}) {
    Hardware::reset();
    hardware_.async = async;
    const Tensor x = Tensor({1.0f, 2.0f}).contiguous().realize();
    EXPECT_EQ(x.to("FAKEHW:1").tolist(), (Floats{1, 2}));
    EXPECT_EQ(hardware_.peer_copies, 0);
    hardware_.peers = true;
    EXPECT_EQ((x + 1).to("FAKEHW:1").tolist(), (Floats{2, 3}));
    EXPECT_EQ(hardware_.peer_copies, 1);
    EXPECT_EQ(x.to("CPU").tolist(), (Floats{1, 2}));
    EXPECT_EQ(hardware_.peer_copies, 1) << "only where both agree";
  }
}

TEST_F(DeviceFeatures, LargeCopiesGoInPieces) {
  const int64_t n = (int64_t{40} << 20) / 4 + 3;  // more than two pieces, the last one short
  const Tensor x = Tensor::arange(n, {.dtype = DType::int32, .device = "CPU"}).contiguous().realize();
  const Tensor back = x.to("FAKEHW").to("FAKEHW:1").to("CPU").realize();
  EXPECT_TRUE((back == x).all().item());
}

TEST_F(DeviceFeatures, LaunchesAreInTheProfile) {
  const Tensor x = Tensor({1.0f}).contiguous().realize();
  clear_profile();
  Context on{{.profile = true}};
  EXPECT_EQ((x * 5).item(), 5);
  const auto events = profile_events();
  const auto kernel = std::ranges::find_if(events, [](const ProfileEvent& e) { return e.track == Symbol("FAKEHW"); });
  ASSERT_NE(kernel, events.end());
  EXPECT_EQ(kernel->category, Symbol("kernel"));
  EXPECT_EQ(kernel->duration_ns, 1000);
  clear_profile();
}

}  // namespace
}  // namespace tinygrad
