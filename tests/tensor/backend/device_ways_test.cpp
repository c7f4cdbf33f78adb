// What devices may have, on the memory and with the kernels of each that computes here: graphs, ways between peers, errors that come late;
// and copies between each two of them.
#include <gtest/gtest.h>

#include <fmt/core.h>
#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"
#include "tensor/backend/fake_hardware.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
using test::Hardware;

class WaysOf : public test::EveryDevice {
 protected:
  WaysOf() {
    static const std::vector<std::string> devices = test::tensor_devices();
    test::register_hardware_over(devices);
    const auto number = std::ranges::find(devices, GetParam()) - devices.begin();
    here_ = number == 0 ? "OVER" : fmt::format("OVER:{}", 2 * number);
    peer_ = fmt::format("OVER:{}", 2 * number + 1);
    hardware_.async = true;
  }
  ~WaysOf() override { Hardware::reset(); }

  Tensor on_device(const Floats& values) const { return Tensor(values).to(here_).realize(); }
  static Tensor chain(Tensor x, int length) {
    for (int i = 0; i < length; ++i) x = (x + 1).realize();
    return x;
  }

  Hardware& hardware_ = Hardware::reset();
  std::string here_, peer_;
};
INSTANTIATE_TEST_SUITE_P(All, WaysOf, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

TEST_P(WaysOf, LateErrorsLoseWhatWasWritten) {
  const Tensor x = on_device({1, 2}), good = (x + 1).realize();
  synchronize(here_);
  hardware_.fail_in = 1;
  const Tensor one = (x * 2).realize(), two = (x * 3).realize();  // nobody has noticed yet
  EXPECT_THROW(synchronize(here_), DeviceError);
  EXPECT_NO_THROW(synchronize(here_)) << "said once";
  EXPECT_THROW(one.tolist(), DeviceError);
  EXPECT_THROW(two.tolist(), DeviceError);
  EXPECT_EQ(good.tolist(), (Floats{2, 3}));
  EXPECT_EQ((x * 3).tolist(), (Floats{3, 6}));
}

TEST_P(WaysOf, LateErrorsOfReplaysLoseTheirResults) {
  for (const bool graphs : {false, true}) {
    hardware_.graphs = graphs;
    const auto f = jit([](const Tensor& x) { return chain(x, 4); });
    const Tensor x = on_device({1});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).item(), 5);
    hardware_.fail_in = 2;
    const Tensor lost = f(x);
    EXPECT_THROW(lost.item(), DeviceError);
    EXPECT_THROW(lost.item(), DeviceError) << "still";
    EXPECT_EQ(f(x).item(), 5);
  }
}

/// A graph knows of the launches before only what it was told has changed.
TEST_P(WaysOf, GraphsOfOtherArguments) {
  hardware_.graphs = true;
  const auto f = jit([](const Tensor& x, const Tensor& y) { return chain(x * y, 3); });
  const Tensor a = on_device({1, 2}), b = on_device({3, 4}), c = on_device({5, 6});
  for (int i = 0; i < 8; ++i) {
    const Tensor& y = i % 3 == 0 ? a : i % 3 == 1 ? b : c;
    EXPECT_EQ(f(a, y).tolist(), (Floats{1 * (1 + 2.0f * float(i % 3)) + 3, 2 * (2 + 2.0f * float(i % 3)) + 3})) << i;
  }
  EXPECT_GE(hardware_.graph_runs, 6);
}

TEST_P(WaysOf, GraphsOfOtherSizes) {
  hardware_.graphs = true;
  const Variable n("n", 1, 9);
  const Tensor all = on_device({1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto f = jit([&](const Variable& count) {
    const Tensor part = (all[{Slice{.stop = count}}] * 2).contiguous();
    return (part.sum() + 1).realize();
  });
  for (int i = 1; i <= 9; ++i) EXPECT_EQ(f(n.bind(i)).item(), i * (i + 1) + 1) << i;
  EXPECT_GE(hardware_.graph_runs, 6);
}

TEST_P(WaysOf, PeersCopyAfterWhatWasLaunched) {
  hardware_.peers = true;
  const Tensor x = on_device({1, 2, 3});
  Tensor y = (x * 2).contiguous().realize();
  const Tensor there = y.to(peer_).realize();
  y.assign(y + 1).realize();  // overwrites what is copied, after the copy
  EXPECT_EQ(hardware_.peer_copies, 1);
  EXPECT_EQ((there + 1).tolist(), (Floats{3, 5, 7}));
  EXPECT_EQ(y.tolist(), (Floats{3, 5, 7}));
  EXPECT_EQ(there[{Slice{.start = 1}}].to(here_).tolist(), (Floats{4, 6}));
}

TEST_P(WaysOf, PeersThatFailLate) {
  hardware_.peers = true;
  const Tensor x = on_device({1, 2, 3});
  synchronize(here_);
  hardware_.fail_in = 0;
  const Tensor there = x.to(peer_).realize();
  EXPECT_THROW(there.tolist(), DeviceError);
  EXPECT_EQ(x.tolist(), (Floats{1, 2, 3}));
  EXPECT_EQ(x.to(peer_).tolist(), (Floats{1, 2, 3}));
}

TEST_P(WaysOf, CopiesToEachDevice) {
  const std::string here = GetParam();
  const int64_t many = (int64_t{17} << 20) / 4 + 3;  // more than one piece, the last one short
  const Tensor x = Tensor::arange(many, {.dtype = DType::int32, .device = "CPU"}).contiguous().realize().to(here).realize();
  for (const std::string& other : test::tensor_devices()) {
    const Tensor there = x.to(other).realize();
    EXPECT_EQ(there.device(), other.substr(0, other.find(':')));  // CUDA:PTX is another way to make code for CUDA
    EXPECT_TRUE((there.to("CPU").realize() == x.to("CPU").realize()).all().item()) << other;
    const Tensor part = x[{Slice{.start = 5, .stop = 12}}];
    EXPECT_EQ((part.to(other) + 1).to(here).cast(DType::float32).tolist(), (Floats{6, 7, 8, 9, 10, 11, 12})) << other;
  }
}

}  // namespace
}  // namespace tinygrad
