#include "base/subprocess.h"

#include <chrono>
#include <csignal>
#include <stop_token>
#include <thread>

#include <gtest/gtest.h>
#include <tinygrad/context.h>
#include <tinygrad/errors.h>

namespace tinygrad {
namespace {

TEST(Subprocess, TakesATextAndGivesWhatIsWritten) {
  const std::string text(1 << 20, 'x');  // more than a pipe holds
  const ProcessResult result = run_process({"cat"}, text);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, text);
}

TEST(Subprocess, SaysHowItEnded) {
  EXPECT_EQ(run_process({"sh", "-c", "echo no >&2; exit 3"}, "").exit_code, 3);
  EXPECT_EQ(run_process({"sh", "-c", "echo no >&2; exit 3"}, "").err, "no\n");
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}, "").exit_code, -9);
  EXPECT_THROW(run_process({"/no/such/program"}, ""), DeviceError);
}

TEST(Subprocess, EndsWhenTheCallerIsCancelled) {
  std::stop_source source;
  const Context guard{{.cancel = source.get_token()}};
  const std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    source.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(run_process({"sleep", "60"}, ""), Cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(Subprocess, MayBeReapedByTheSystem) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const ProcessResult result = run_process({"cat"}, "text");
  std::signal(SIGCHLD, before);
  EXPECT_EQ(result.out, "text");
}

}  // namespace
}  // namespace tinygrad
