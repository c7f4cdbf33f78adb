#include <gtest/gtest.h>
#include <tinygrad/errors.h>
#include <tinygrad/helpers.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/profile.h"

namespace tinygrad {
namespace {

TEST(Getenv, ReadsByTheTypeOfTheDefault) {
  setenv("TG_TEST_VARIABLE", "12", 1);
  EXPECT_EQ(getenv("TG_TEST_VARIABLE", 0), 12);
  EXPECT_EQ(getenv("TG_TEST_VARIABLE", 0.5), 12.0);
  EXPECT_EQ(getenv("TG_TEST_VARIABLE", "x"), "12");
  EXPECT_EQ(getenv("TG_TEST_VARIABLE", int64_t{1}), 12);
  EXPECT_THROW(getenv("TG_TEST_VARIABLE", true), ValueError);
  setenv("TG_TEST_VARIABLE", "twelve", 1);
  try {
    getenv("TG_TEST_VARIABLE", 0);
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "TG_TEST_VARIABLE: got 'twelve', expected an integer");
  }
  unsetenv("TG_TEST_VARIABLE");
  EXPECT_EQ(getenv("TG_TEST_VARIABLE", 7), 7);
  EXPECT_EQ(getenv("TG_TEST_VARIABLE", false), false);
}

TEST(GlobalCounters, AddFromManyThreadsAndReset) {
  GlobalCounters::reset();
  int64_t memory = GlobalCounters::mem_used;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([] {
      for (int i = 0; i < 1000; i++) {
        GlobalCounters::kernel_count++;
        GlobalCounters::global_ops += 3;
        GlobalCounters::time_sum_s += 0.5;
        GlobalCounters::mem_used += 2;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(GlobalCounters::kernel_count, 4000u);
  EXPECT_EQ(GlobalCounters::global_ops, 12000u);
  EXPECT_EQ(GlobalCounters::time_sum_s, 2000.0);
  GlobalCounters::reset();
  EXPECT_EQ(GlobalCounters::kernel_count, 0u);
  EXPECT_EQ(GlobalCounters::time_sum_s, 0.0);
  EXPECT_EQ(GlobalCounters::mem_used, memory + 8000);
  GlobalCounters::mem_used -= 8000;
}

TEST(Timing, PrintsOneLineWhenEnabled) {
  std::vector<std::string> lines;
  ScopedLogSink sink([&](std::string_view line) { lines.emplace_back(line); });
  { Timing quiet("quiet: ", false); }
  EXPECT_TRUE(lines.empty());
  {
    Timing t("forward: ");
    EXPECT_GE(t.elapsed_ms(), 0.0);
  }
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("forward: ") && lines[0].ends_with(" ms")) << lines[0];
}

TEST(Profiling, PrintsTheSpansOfItsScope) {
  std::vector<std::string> lines;
  ScopedLogSink sink([&](std::string_view line) { lines.emplace_back(line); });
  {
    Profiling profiling;
    for (int i = 0; i < 3; i++) ProfileSpan span("inner", "test");
    ProfileSpan other("other", "test");
  }
  { ProfileSpan after("after", "test"); }
  ASSERT_EQ(lines.size(), 2u);
  bool first = lines[0].ends_with("test: inner");
  EXPECT_NE(lines[first ? 0 : 1].find("3 x  test: inner"), std::string::npos);
  { Profiling off({.enabled = false}); }
  EXPECT_EQ(lines.size(), 2u);
  clear_profile();
}

}  // namespace
}  // namespace tinygrad
