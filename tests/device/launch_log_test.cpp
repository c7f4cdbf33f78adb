#include "device/launch_log.h"

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "device/fake_device.h"
#include "device/multi_buffer.h"

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

TEST(MultiBuffer, HasAPartOnEachDevice) {
  test::FakeDevice a("A"), b("B", false);
  Device* const both[] = {&a, &b};
  const auto buffer = MultiBuffer::make(both, 6, DType::float32);
  ASSERT_EQ(buffer->parts().size(), 2u);
  EXPECT_EQ(buffer->size(), 6);
  EXPECT_EQ(buffer->dtype(), DType::float32);
  EXPECT_FALSE(buffer->is_allocated());
  buffer->ensure_allocated();
  EXPECT_TRUE(buffer->is_allocated());
  EXPECT_EQ(a.allocator().bytes_in_use(), 24u);
  EXPECT_EQ(b.allocator().bytes_in_use(), 24u);
  EXPECT_EQ(&buffer->parts()[1]->device(), &b);
  Device* const twice[] = {&a, &a};
  EXPECT_THROW(MultiBuffer::make(twice, 6, DType::float32), ValueError);
  EXPECT_THROW(MultiBuffer::make({}, 6, DType::float32), ValueError);
}

}  // namespace
}  // namespace tinygrad
