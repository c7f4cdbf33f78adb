// Ctrl-C in tg: status 130, and nothing is left behind.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "apps/support.h"

namespace tinygrad::test {
namespace {

/// `tg ARGUMENTS` in a folder of its own for temporary files, whose path marks its processes.
class RunningTg {
 public:
  RunningTg(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
    std::filesystem::create_directory(folder_.path("tmp"));
    child_ = ::fork();
    if (child_ != 0) return;
    ::signal(SIGINT, SIG_DFL);  // which a shell may have switched off for what it started
    for (const auto& [name, to] : {std::pair("out", 1), std::pair("err", 2)})
      ::dup2(::open(folder_.path(name).c_str(), O_CREAT | O_WRONLY, 0600), to);
    for (const std::string& e : environment) ::putenv(const_cast<char*>(e.c_str()));
    ::setenv("TMPDIR", folder_.path("tmp").c_str(), 1);
    ::setenv("CACHEDB", folder_.path("cache.db").c_str(), 1);
    std::vector<char*> words{const_cast<char*>(TG_PROGRAM)};
    for (const std::string& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
    words.push_back(nullptr);
    ::execv(TG_PROGRAM, words.data());
    ::_exit(127);
  }

  /// After it was running for some time. What it ended with, and what it has printed.
  Ran interrupt(std::chrono::milliseconds after) {
    std::this_thread::sleep_for(after);
    ::kill(child_, SIGINT);
    int status = 0;
    ::waitpid(child_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_text(folder_.path("out")), read_text(folder_.path("err"))};
  }

  bool has_left_files() const { return !std::filesystem::is_empty(folder_.path("tmp")); }
  /// Processes with its environment, such as workers of a search.
  int processes_left() const {
    int left = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string environment = read_text((entry.path() / "environ").string());
      left += environment.find("TMPDIR=" + folder_.path("tmp")) != std::string::npos;
    }
    return left;
  }

 private:
  const TempFolder folder_;
  pid_t child_ = -1;
};

void expect_interrupted(RunningTg tg, int after_ms) {
  const Ran ran = tg.interrupt(std::chrono::milliseconds(after_ms));
  EXPECT_EQ(ran.status, 130) << ran.out << ran.err;
  EXPECT_NE(ran.err.find("tg: interrupted"), std::string::npos) << ran.err;
  EXPECT_FALSE(tg.has_left_files());
  EXPECT_EQ(tg.processes_left(), 0);
}

TEST(TgInterrupt, WhileItTrains) { expect_interrupted({{"train", "digits", "--epochs", "10000", "--png", ""}, {"DEV=CPU"}}, 1500); }

TEST(TgInterrupt, WhileItSearches) {
  expect_interrupted({{"bench", "matmul", "--size", "1024", "--budget", "1000"}, {"DEV=CPU", "BEAM=8"}}, 1500);
}

TEST(TgInterrupt, WhileAnotherProgramCompiles) {
  expect_interrupted({{"train", "digits", "--epochs", "10000", "--png", ""}, {"DEV=CPU:CLANG", "CCACHE=0"}}, 700);
}

}  // namespace
}  // namespace tinygrad::test
