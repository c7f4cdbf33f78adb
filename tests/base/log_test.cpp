#include "base/log.h"

#include <gtest/gtest.h>
#include <tinygrad/context.h>

#include <string>
#include <thread>
#include <vector>

namespace tinygrad {
namespace {

TEST(Log, LevelFollowsTheThreadsDebug) {
  Context guard{{.debug = 2}};
  EXPECT_TRUE(log_enabled(2));
  EXPECT_FALSE(log_enabled(3));
}

TEST(Log, GoesToStandardErrorByDefault) {
  testing::internal::CaptureStderr();
  log_line("a line");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a line\n");
}

TEST(Log, ASinkTakesWholeLinesOfManyThreads) {
  std::vector<std::string> lines;
  {
    ScopedLogSink sink([&](std::string_view line) { lines.emplace_back(line); });
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
      threads.emplace_back([t] {
        for (int i = 0; i < 100; i++) log_line(std::string(50, static_cast<char>('a' + t)));
      });
    for (auto& t : threads) t.join();
  }
  ASSERT_EQ(lines.size(), 400u);
  for (const std::string& line : lines) EXPECT_EQ(line, std::string(50, line[0]));
}

TEST(Log, SinksNest) {
  std::string outer, inner;
  ScopedLogSink a([&](std::string_view line) { outer += line; });
  {
    ScopedLogSink b([&](std::string_view line) { inner += line; });
    log_line("in");
  }
  log_line("out");
  EXPECT_EQ(inner, "in");
  EXPECT_EQ(outer, "out");
}

TEST(Log, ColoursAreOffWhereNobodySeesThem) {
  ScopedLogSink sink([](std::string_view) {});
  EXPECT_EQ(colored("text", Color::kRed), "text");
  EXPECT_FALSE(log_is_terminal());
}

}  // namespace
}  // namespace tinygrad
