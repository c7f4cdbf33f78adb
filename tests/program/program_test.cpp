#include "program/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include <tinygrad/context.h>

#include "codegen/kernels.h"
#include "device/host_memory.h"

namespace tinygrad {
namespace {

class NoMemory final : public HostMemory<Allocator> {
  using HostMemory::HostMemory;
  void* take(size_t, const BufferSpec&) override { return nullptr; }
  void give_back(void*, size_t, const BufferSpec&) noexcept override {}
};

/// Compiles for as long as it is told to.
class SlowCompiler final : public Device {
 public:
  SlowCompiler() : Device("SLOW", interp_target(), std::make_unique<NoMemory>("SLOW")) {}
  std::string render(const UOp&, const KernelInfo&) override { return "source"; }
  std::string compile(const std::string&) override {
    if (!is_slow) return "binary";
    started.set_value();
    go_on.get_future().wait();
    return "binary";
  }
  std::unique_ptr<Kernel> load(const KernelInfo&, const UOp&, const std::string&) override { return nullptr; }

  std::atomic<bool> is_slow{true};
  std::promise<void> started, go_on;
};

TEST(Program, AForkedChildMakesWhatAThreadOfItsParentIsMaking) {
  static SlowCompiler& device = *new SlowCompiler;
  const UOp sink = codegen::test::elementwise(64);
  std::thread other([&] { get_program(sink, device, current_options()); });
  device.started.get_future().wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a deadlock would keep the test forever
    device.is_slow = false;
    _exit(get_program(sink, device, current_options()) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  device.go_on.set_value();
  other.join();
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tinygrad
