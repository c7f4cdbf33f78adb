#include "base/subprocess.h"

#include <csignal>

#include <gtest/gtest.h>
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

TEST(Subprocess, MayBeReapedByTheSystem) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const ProcessResult result = run_process({"cat"}, "text");
  std::signal(SIGCHLD, before);
  EXPECT_EQ(result.out, "text");
}

}  // namespace
}  // namespace tinygrad
