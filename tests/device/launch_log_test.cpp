#include "device/launch_log.h"

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "device/fake_device.h"

namespace tinygrad {
namespace {

TEST(LaunchLog, AnErrorIsLaidToWhatNoWaitHasPassed) {
  LaunchLog log;
  const auto launch = [&] {
    const uint64_t n = log.begin();
    log.end();
    return n;
  };
  const uint64_t first = launch();
  log.passed(log.mark());
  const uint64_t second = launch(), third = launch();
  log.failed("kaputt");
  const uint64_t fourth = launch();
  EXPECT_EQ(log.why_lost(first), "");
  EXPECT_EQ(log.why_lost(second), "kaputt");
  EXPECT_EQ(log.why_lost(third), "kaputt");
  EXPECT_EQ(log.why_lost(fourth), "");
  EXPECT_EQ(log.why_lost(0), "") << "what no launch has written";
}

TEST(LaunchLog, AWaitSaysNothingAboutLaunchesThatAreBeingMade) {
  LaunchLog log;
  const uint64_t slow = log.begin();  // by another thread, not submitted yet
  const uint64_t quick = log.begin();
  log.end();
  log.passed(log.mark());
  log.end();
  log.failed("late");
  EXPECT_EQ(log.why_lost(slow), "late");
  EXPECT_EQ(log.why_lost(quick), "late") << "rather one too many than one too few";
}

}  // namespace
}  // namespace tinygrad
