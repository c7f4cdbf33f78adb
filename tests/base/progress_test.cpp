#include "base/progress.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <tinygrad/context.h>
#include <tinygrad/progress.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "base/log.h"

namespace tinygrad {
namespace {

using detail::progress_line;
using detail::ProgressView;

ProgressView half() { return {.description = "train", .unit = "it", .postfix = "loss 0.3", .done = 50, .total = 100, .seconds = 65}; }

TEST(ProgressLine, HasPercentageCountTimesRateAndText) {
  EXPECT_EQ(progress_line(half(), 0), "train:  50%|| 50/100 [1:05<1:05, 1.30s/it] loss 0.3");
  ProgressView fast = half();
  fast.seconds = 0.25;
  fast.postfix = "";
  EXPECT_EQ(progress_line(fast, 0), "train:  50%|| 50/100 [0:00<0:00, 200it/s]");
}

TEST(ProgressLine, TheBarTakesWhatTheTextsLeave) {
  EXPECT_EQ(progress_line(half(), 58), "train:  50%|███▌   | 50/100 [1:05<1:05, 1.30s/it] loss 0.3");
  ProgressView done = half();
  done.done = 100;
  EXPECT_NE(progress_line(done, 60).find("100%|████"), std::string::npos);
  done.done = 200;  // more steps than announced
  EXPECT_NE(progress_line(done, 60).find("100%|████"), std::string::npos);
}

TEST(ProgressLine, EdgesAreReadable) {
  EXPECT_EQ(progress_line({.unit = "B", .done = 7, .total = -1, .seconds = 7200}, 80), "7 B [2:00:00, 1028.57s/B]");
  EXPECT_EQ(progress_line({.unit = "it", .total = 10}, 0), "  0%|| 0/10 [0:00<?, ?it/s]");
  EXPECT_EQ(progress_line({.unit = "it", .total = 0}, 0), "100%|| 0/0 [0:00<?, ?it/s]");
}

class Progress : public testing::Test {
 protected:
  std::vector<std::string> lines_;
  ScopedLogSink sink_{[this](std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(Progress, WithoutATerminalOnlyTheLastStateIsPrinted) {
  {
    ProgressBar bar({.description = "work", .total = 3});
    for (int i = 0; i < 3; i++) bar.update();
    bar.set_postfix("done");
    EXPECT_TRUE(lines_.empty());
  }
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_TRUE(lines_[0].starts_with("work: 100%|")) << lines_[0];
  EXPECT_TRUE(lines_[0].ends_with(" done")) << lines_[0];
}

TEST_F(Progress, ClosesOnce) {
  ProgressBar bar({.total = 1});
  bar.close();
  bar.close();
  ProgressBar moved = std::move(bar);
  moved.close();
  EXPECT_EQ(lines_.size(), 1u);
  moved = ProgressBar({.description = "next"});
  moved.close();
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(Progress, DisabledShowsNothing) {
  for (int64_t i : trange(5, {.disable = true})) (void)i;
  EXPECT_TRUE(lines_.empty());
}

TEST_F(Progress, TrangeAndTqdmGoOverTheirRange) {
  int64_t sum = 0;
  for (int64_t i : trange(5, {.description = "steps"})) sum += i;
  EXPECT_EQ(sum, 10);
  std::vector<int> values{1, 2, 3};
  for (int& v : tqdm(values)) v *= 2;
  EXPECT_EQ(values, (std::vector<int>{2, 4, 6}));
  for (int v : tqdm(std::vector<int>{1, 2})) sum += v;
  EXPECT_EQ(sum, 13);
  const std::vector<int> constant{1};
  for (int v : tqdm(constant)) sum += v;
  EXPECT_EQ(sum, 14);
  for (int64_t i : trange(-3)) sum += i;
  EXPECT_EQ(sum, 14);
  ASSERT_EQ(lines_.size(), 5u);
  EXPECT_NE(lines_[0].find(" 5/5 "), std::string::npos);
  EXPECT_NE(lines_[2].find(" 2/2 "), std::string::npos);
}

TEST_F(Progress, LeavingTheLoopShowsHowFarItWas) {
  {
    auto steps = trange(10);
    for (int64_t i : steps) {
      steps.bar().set_postfix("at " + std::to_string(i));
      if (i == 4) break;
    }
  }
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find(" 4/10 "), std::string::npos);
  EXPECT_TRUE(lines_[0].ends_with(" at 4"));
}

TEST_F(Progress, ThreadsShareABar) {
  {
    ProgressBar bar({.total = 4000});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; i++) bar.update();
      });
    for (auto& t : threads) t.join();
  }
  EXPECT_NE(lines_.at(0).find(" 4000/4000 "), std::string::npos);
}

/// Standard error is a terminal while it lives.
class Terminal {
 public:
  Terminal() {
    EXPECT_EQ(openpty(&master_, &slave_, nullptr, nullptr, nullptr), 0);
    saved_ = dup(STDERR_FILENO);
    dup2(slave_, STDERR_FILENO);
  }
  ~Terminal() { restore(), close(master_); }
  /// All that was written.
  std::string text() {
    restore();
    std::string all;
    char buffer[4096];
    for (ssize_t n; (n = read(master_, buffer, sizeof buffer)) > 0;) all.append(buffer, static_cast<size_t>(n));
    return all;
  }

 private:
  void restore() {
    if (saved_ < 0) return;
    dup2(saved_, STDERR_FILENO);
    close(saved_), close(slave_);
    saved_ = -1;
  }
  int master_ = -1, slave_ = -1, saved_ = -1;
};

TEST(ProgressOnATerminal, IsRedrawnInPlaceBelowTheLog) {
  Terminal terminal;
  {
    ProgressBar bar({.description = "work", .total = 1000});
    for (int i = 0; i < 1000; i++) bar.update();  // in far less than the time between two redraws
    log_line("a line");
  }
  std::string text = terminal.text();
  constexpr std::string_view kClear = "\r\x1b[K";
  size_t first = text.find(std::string(kClear) + "work:   0%|"), line = text.find(std::string(kClear) + "a line\r\n"),
         last = text.find(std::string(kClear) + "work: 100%|");
  EXPECT_EQ(first, 0u) << text;
  EXPECT_LT(first, line) << text;
  EXPECT_LT(line, last) << text;
  EXPECT_NE(last, text.npos) << text;
  EXPECT_TRUE(text.ends_with("\r\n")) << text;
}

TEST(ProgressOnATerminal, ColoursFollowNoColor) {
  Terminal terminal;
  Context with{{.no_color = false}};
  EXPECT_EQ(colored("x", Color::kRed), "\x1b[91mx\x1b[0m");
  Context without{{.no_color = true}};
  EXPECT_EQ(colored("x", Color::kRed), "x");
}

}  // namespace
}  // namespace tinygrad
