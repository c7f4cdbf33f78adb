// PROFILE on every device that computes here: each kernel has its times on the host's clock.
#include <gtest/gtest.h>

#include <thread>

#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"
#include "support/device_events.h"

namespace tinygrad {
namespace {

class ProfileOn : public test::EveryDevice {
 protected:
  ProfileOn() { clear_profile(); }
  ~ProfileOn() override { clear_profile(); }

  std::string track() { return std::string(device().name().str()); }

  const Context profiled_{{.profile = true}};
};
INSTANTIATE_TEST_SUITE_P(All, ProfileOn, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

Tensor steps(Tensor x, int count) {
  for (int i = 0; i < count; ++i) x = (x * (i + 2)).realize();
  return x;
}

TEST_P(ProfileOn, KernelsHaveTimes) {
  const Tensor x = Tensor({1.0f, 2.0f}).to(track()).realize();
  synchronize(track());
  clear_profile();
  const int64_t before = profile_now_ns();
  EXPECT_EQ(steps(x, 4).tolist(), (std::vector<float>{120, 240}));
  const auto kernels = test::device_events(track(), "kernel");
  EXPECT_EQ(kernels.size(), 4u);
  test::expect_one_after_another(kernels, before, profile_now_ns());
}

/// Whoever reads the profile waits for what devices still hold.
TEST_P(ProfileOn, NobodyNeedsToWait) {
  const Tensor x = Tensor({1.0f, 2.0f}).to(track()).realize();
  synchronize(track());
  clear_profile();
  const Tensor y = steps(x, 3);
  EXPECT_EQ(test::device_events(track(), "kernel").size(), 3u);
}

TEST_P(ProfileOn, ReplaysToo) {
  const auto f = jit([](const Tensor& y) { return steps(y, 3); });
  const Tensor x = Tensor({1.0f, 2.0f}).to(track()).realize();
  for (int i = 0; i < 3; ++i) f(x);
  clear_profile();
  const int64_t before = profile_now_ns();
  EXPECT_EQ(f(x).tolist(), (std::vector<float>{24, 48}));
  const auto kernels = test::device_events(track(), "kernel");
  EXPECT_EQ(kernels.size(), 3u) << "each by itself";
  test::expect_one_after_another(kernels, before, profile_now_ns());
}

/// Where the device times them.
TEST_P(ProfileOn, Copies) {
  const bool has_times = device().records_profile() && track() != "WEBGPU";
  const int64_t before = profile_now_ns();
  EXPECT_EQ(Tensor({1.0f, 2.0f}).to(track()).realize().tolist(), (std::vector<float>{1, 2}));
  const auto copies = test::device_events(track(), "copy");
  ASSERT_EQ(copies.size(), has_times ? 2u : 0u);
  if (!has_times) return;
  EXPECT_EQ(copies[0].name, Symbol("copy from the host"));
  EXPECT_EQ(copies[1].name, Symbol("copy to the host"));
  test::expect_one_after_another(copies, before, profile_now_ns());
}

TEST_P(ProfileOn, ThreadsThatLaunchAndWait) {
  const Tensor x = Tensor({1.0f, 2.0f}).to(track()).realize();
  steps(x, 5).tolist();
  clear_profile();
  const int64_t before = profile_now_ns();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const Context here{{.dev = GetParam(), .profile = true}};
      for (int i = 0; i < 20; ++i) {
        const Tensor y = steps(x, 5);
        if (i % 4 == 0) {
          EXPECT_EQ(y.tolist(), (std::vector<float>{720, 1440}));
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  const auto kernels = test::device_events(track(), "kernel");
  EXPECT_EQ(kernels.size(), 400u);
  for (const ProfileEvent& e : kernels) {
    EXPECT_GE(e.start_ns, before);
    EXPECT_LE(e.start_ns + e.duration_ns, profile_now_ns());
  }
}

}  // namespace
}  // namespace tinygrad
