// A device that fails while it runs: what is lost says so, the rest is as it was.
#include <gtest/gtest.h>

#include <atomic>

#include <tinygrad/tinygrad.h>

#include "device/device.h"
#include "device/fake_device.h"
#include "runtime/interp/device.h"
#include "runtime/interp/kernel.h"
#include "support/message_of.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

/// Launches that still work; a later one fails.
std::atomic<int> launches_left{1 << 30};

class FaultyKernel final : public Kernel {
 public:
  explicit FaultyKernel(std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {}
  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims& dims,
                               bool wait) override {
    if (launches_left-- <= 0) throw DeviceError("FAULTY: the device was lost");
    return inner_->launch(buffers, variables, dims, wait);
  }

 private:
  std::unique_ptr<Kernel> inner_;
};

class FaultyDevice final : public Device {
 public:
  explicit FaultyDevice(const std::string& name)
      : Device(name, interp_target(), std::make_unique<test::CountingAllocator>(name, true), test::no_code) {}
  std::unique_ptr<Kernel> load(const KernelInfo& info, const UOp& linear, const std::string&) override {
    return std::make_unique<FaultyKernel>(runtime::interp::make_kernel(info, linear));
  }
};

class FailingKernel : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static constexpr Backend faulty{
        .name = "FAULTY",
        .may_be_default = false,
        .unavailable = runtime::interp_unavailable,
        .open = [](const DeviceChoice& c) -> std::unique_ptr<Device> { return std::make_unique<FaultyDevice>(c.canonical()); }};
    register_backend(faulty);
  }
  void TearDown() override { launches_left = 1 << 30; }

  Context on_device_{{.dev = "FAULTY"}};
};

TEST_F(FailingKernel, AValueIsComputedAgain) {
  const Tensor x({1.0, 2.0}), y = (x + 1).sum() * x;
  launches_left = 0;
  EXPECT_THROW(y.realize(), DeviceError);
  launches_left = 1 << 30;
  EXPECT_EQ(y.tolist(), (Floats{5, 10}));
  EXPECT_EQ(x.tolist(), (Floats{1, 2}));
}

TEST_F(FailingKernel, MemoryThatMayBeHalfWrittenCannotBeRead) {
  Tensor x = Tensor({1.0, 2.0}).realize();
  const Tensor other = Tensor({3.0}).realize();
  x += 1;
  launches_left = 0;
  EXPECT_THROW(x.realize(), DeviceError);
  launches_left = 1 << 30;
  try {
    x.tolist();
    FAIL() << "a store that may have run was run again";
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("the device was lost"), std::string::npos) << e.what();
  }
  EXPECT_EQ(other.tolist(), (Floats{3}));
}

TEST_F(FailingKernel, InARecordedCallOfAJittedFunction) {
  Tensor count = Tensor({1.0}).realize();
  const auto f = jit([&](const Tensor& x) { return (x + count).realize() * 2; });
  launches_left = 0;
  EXPECT_THROW(f(Tensor({1.0})), DeviceError);
  launches_left = 1 << 30;
  f(Tensor({1.0}));
  launches_left = 1;
  EXPECT_THROW(f(Tensor({1.0})), DeviceError);
  EXPECT_FALSE(f.captured());
  launches_left = 1 << 30;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(Tensor({1.0 * i})).tolist(), (Floats{2 * float(i) + 2}));
  EXPECT_TRUE(f.captured());
}

TEST_F(FailingKernel, InAReplay) {
  Tensor count = Tensor({1.0}).realize();
  const auto f = jit([&](const Tensor& x) {
    count += x;
    return x * 2;
  });
  Tensor kept;
  for (int i = 0; i < 3; ++i) kept = f(Tensor({1.0}));
  EXPECT_TRUE(f.captured());
  const Tensor x = Tensor({1.0}).realize();
  launches_left = 0;
  EXPECT_THROW(f(x), DeviceError);
  launches_left = 1 << 30;
  EXPECT_THROW(count.tolist(), DeviceError);  // it may be half written
  EXPECT_THROW(f(x), DeviceError);
  EXPECT_EQ(x.tolist(), (Floats{1}));
  EXPECT_EQ(kept.tolist(), (Floats{2}));
  count = Tensor({5.0}).realize();
  f(x);
  EXPECT_EQ(count.tolist(), (Floats{6}));
}

TEST_F(FailingKernel, AReplayNamesTheKernelAndWhatItComputes) {
  const auto f = jit([&](const Tensor& x) {
    const Tensor y = (x + 1).square().realize();
    return y.reshape({2, 3}).sum(1).exp();
  });
  const Tensor x = Tensor::ones({6}).contiguous().realize();
  for (int i = 0; i < 3; ++i) f(x);
  ASSERT_TRUE(f.captured());
  const auto error_after = [&](int launches) {
    launches_left = launches;
    const std::string text = test::message_of<DeviceError>([&] { f(x); });
    launches_left = 1 << 30;
    return text;
  };
  const std::string first = error_after(0), second = error_after(1);
  EXPECT_NE(first.find("the device was lost\n  in a replay of a jitted function, kernel "), std::string::npos) << first;
  EXPECT_NE(first.find("\n  while computing square: (6,) dtypes.float32 of (6,)"), std::string::npos) << first;
  EXPECT_NE(second.find("\n  while computing exp: (2,) dtypes.float32 of (2,)"), std::string::npos) << second;
  EXPECT_EQ(second.find("square"), std::string::npos) << second;
  f(x);
}

}  // namespace
}  // namespace tinygrad
