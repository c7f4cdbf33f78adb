#include "program/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "codegen/kernels.h"
#include "device/host_memory.h"
#include "support/message_of.h"

namespace tinygrad {
namespace {

class NoMemory final : public HostMemory<Allocator> {
  using HostMemory::HostMemory;
  void* take(size_t, const BufferSpec&) override { return nullptr; }
  void give_back(void*, size_t, const BufferSpec&) noexcept override {}
};

/// Compiles for as long as it is told to.
struct SlowCompiler {
  std::atomic<bool> is_slow{true};
  std::promise<void> started, go_on;
};
SlowCompiler& slow_compiler() {
  static SlowCompiler& one = *new SlowCompiler;
  return one;
}

constexpr CodePath slow_path{.renderer = "SLOW",
                             .render = [](const Target&, const UOp&, const KernelInfo&) { return std::string("source"); },
                             .compile =
                                 [](const Target&, const std::string&) {
                                   if (slow_compiler().is_slow) {
                                     slow_compiler().started.set_value();
                                     slow_compiler().go_on.get_future().wait();
                                   }
                                   return std::string("binary");
                                 }};

class SlowDevice final : public Device {
 public:
  SlowDevice() : Device("SLOW", interp_target(), std::make_unique<NoMemory>("SLOW"), slow_path) {}
  std::unique_ptr<Kernel> load(const KernelInfo&, const UOp&, const std::string&) override { return nullptr; }
};

TEST(Program, AForkedChildMakesWhatAThreadOfItsParentIsMaking) {
  static SlowDevice& device = *new SlowDevice;
  SlowCompiler& compiler = slow_compiler();
  const UOp sink = codegen::test::elementwise(64);
  std::thread other([&] { get_program(sink, device, current_options()); });
  compiler.started.get_future().wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a deadlock would keep the test forever
    compiler.is_slow = false;
    _exit(get_program(sink, device, current_options()) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  compiler.go_on.set_value();
  other.join();
  EXPECT_EQ(status, 0);
}

TEST(Program, MaxBufferSizeIsOfEachArgument) {
  static SlowDevice& device = *new SlowDevice;
  slow_compiler().is_slow = false;
  Options options = current_options();
  options.max_buffer_size = 1000 * 4;
  EXPECT_TRUE(get_program(codegen::test::elementwise(1000), device, options));
  const std::string message = test::message_of<OutOfMemoryError>([&] { get_program(codegen::test::elementwise(1001), device, options); });
  EXPECT_NE(message.find("has 1001 elements of dtypes.float32, and MAX_BUFFER_SIZE allows 4000 bytes"), std::string::npos) << message;
  options.max_buffer_size = 0;
  EXPECT_TRUE(get_program(codegen::test::elementwise(1001), device, options));
}

}  // namespace
}  // namespace tinygrad
