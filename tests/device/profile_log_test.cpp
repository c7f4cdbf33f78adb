#include "device/profile_log.h"

#include <gtest/gtest.h>

#include <memory>

#include "support/device_events.h"

namespace tinygrad {
namespace {

constexpr int64_t kHour = 3'600'000'000'000;

/// A device whose clock is an hour ahead.
class ProfileLogTest : public testing::Test {
 protected:
  ProfileLogTest() { clear_profile(); }
  ~ProfileLogTest() override { clear_profile(); }

  static int64_t device_now() { return profile_now_ns() + kHour; }
  static std::optional<DeviceSpan> span_of(const std::unique_ptr<DeviceSpan>& timer) {
    return timer ? std::optional(*timer) : std::nullopt;
  }
  void run(const char* name, int64_t begins_before_launch = 0) {
    log_.launch(name, "kernel", [&] {
      const int64_t now = device_now(), begin = now - begins_before_launch;
      while (device_now() < now + 1000) {}
      return std::make_unique<DeviceSpan>(DeviceSpan{begin, begin + 1000});
    });
  }
  void wait() {
    const auto taken = log_.take();
    const int64_t device_ns = device_now();
    log_.record(taken, device_ns, profile_now_ns(), span_of);
  }

  ProfileLog<std::unique_ptr<DeviceSpan>> log_{"TOY:1"};
};

TEST_F(ProfileLogTest, TimesAreOfTheHostsClock) {
  const int64_t before = profile_now_ns();
  run("first");
  run("second");
  EXPECT_TRUE(profile_events().empty()) << "nobody has waited";
  wait();
  const auto events = test::device_events("TOY:1", "kernel");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].name, Symbol("first"));
  EXPECT_EQ(events[0].duration_ns, 1000);
  test::expect_one_after_another(events, before, profile_now_ns());
  wait();
  EXPECT_EQ(profile_events().size(), 2u) << "each is recorded once";
}

TEST_F(ProfileLogTest, NothingBeginsBeforeItsLaunch) {
  const int64_t before = profile_now_ns();
  run("early", kHour);
  wait();
  const auto events = test::device_events("TOY:1", "kernel");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].duration_ns, 1000);
  test::expect_one_after_another(events, before, profile_now_ns());
}

TEST_F(ProfileLogTest, WhatFailedHasNoTimes) {
  run("lost");
  log_.take();
  log_.launch("without times", "kernel", [] { return nullptr; });
  EXPECT_THROW(log_.launch("not launched", "kernel", []() -> std::unique_ptr<DeviceSpan> { throw 1; }), int);
  run("kept");
  wait();
  ASSERT_EQ(profile_events().size(), 1u);
  EXPECT_EQ(profile_events()[0].name, Symbol("kept"));
}

}  // namespace
}  // namespace tinygrad
