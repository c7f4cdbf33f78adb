#include <tinygrad/queue.h>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include <tinygrad/errors.h>

#include "device/device.h"
#include "device/fake_device.h"
#include "device/launch_log.h"

// The thread sanitizer by default ends processes that start threads after a fork of several.
extern "C" const char* __tsan_default_options();  // NOLINT(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }  // NOLINT(readability-identifier-naming)

namespace tinygrad::test {
namespace {

/// Does what it is told to.
class Calls final : public Kernel {
 public:
  explicit Calls(std::function<void(std::span<void* const>, std::span<const int64_t>)> call) : call_(std::move(call)) {}
  std::optional<double> launch(std::span<void* const> buffers, std::span<const int64_t> variables, const LaunchDims&, bool) override {
    call_(buffers, variables);
    return std::nullopt;
  }

 private:
  const std::function<void(std::span<void* const>, std::span<const int64_t>)> call_;
};

class QueueTest : public testing::Test {
 protected:
  static void submit(Queue& queue, std::initializer_list<Command> commands) { queue.submit(std::span(commands.begin(), commands.size())); }
  static LaunchCommand launch(Kernel& kernel, std::span<void* const> buffers = {}, std::span<const int64_t> variables = {}) {
    return {.kernel = &kernel, .buffers = buffers, .variables = variables, .dims = {}};
  }
  static std::string error_of(HostQueue& queue) {
    try {
      queue.synchronize();
      return {};
    } catch (const DeviceError& e) {
      return e.what();
    }
  }

  HostQueue one_{"ONE"}, two_{"TWO"};
};

TEST_F(QueueTest, CommandsRunInTheirOrderWithCopiesOfWhatTheyWereGiven) {
  std::vector<int64_t> seen;
  Calls note([&](auto, auto variables) { seen.push_back(variables[0]); });
  for (int64_t i = 0; i < 1000; ++i) {
    int64_t value = i;
    submit(one_, {launch(note, {}, std::span(&value, 1))});
    value = -1;
  }
  one_.synchronize();
  ASSERT_EQ(seen.size(), 1000u);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(seen[size_t(i)], i);
}

TEST_F(QueueTest, TheHostGoesOn) {
  std::atomic<bool> go{false}, ran{false};
  Calls kernel([&](auto, auto) {
    while (!go) std::this_thread::yield();
    ran = true;
  });
  submit(one_, {launch(kernel)});
  EXPECT_FALSE(ran);
  go = true;
  one_.drain();
  EXPECT_TRUE(ran);
}

TEST_F(QueueTest, AQueueWaitsForWhatAnotherRaises) {
  int value = 0;
  std::atomic<bool> go{false};
  Calls slow([&](auto, auto) {
    while (!go) std::this_thread::yield();
    value = 1;
  });
  int seen = -1;
  Calls look([&](auto, auto) { seen = value; });
  const SignalPtr signal = one_.make_signal();
  submit(one_, {launch(slow), RaiseCommand{signal}});
  submit(two_, {WaitCommand{signal}, launch(look)});
  go = true;
  two_.synchronize();
  EXPECT_EQ(seen, 1);
  signal->wait();
}

TEST_F(QueueTest, WhatFailsIsSaidOnceAndToThoseThatWait) {
  Calls bad([](auto, auto) { throw DeviceError("broken"); });
  const SignalPtr signal = one_.make_signal();
  submit(one_, {launch(bad), RaiseCommand{signal}});
  submit(two_, {WaitCommand{signal}});
  EXPECT_EQ(error_of(two_), "TWO: broken");
  EXPECT_EQ(error_of(one_), "ONE: broken");
  EXPECT_EQ(error_of(one_), "");
  EXPECT_EQ(error_of(two_), "");
}

TEST_F(QueueTest, ManyThreadsSubmit) {
  int64_t sum = 0;  // of the queue's thread
  Calls add([&](auto, auto variables) { sum += variables[0]; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int64_t i = 0; i < 500; ++i) submit(one_, {launch(add, {}, std::span(&i, 1))});
    });
  for (std::thread& t : threads) t.join();
  one_.synchronize();
  EXPECT_EQ(sum, 8 * 499 * 500 / 2);
}

TEST_F(QueueTest, AForkedChildHasAThreadOfItsOwn) {
  std::atomic<int> runs{0};
  Calls count([&](auto, auto) { ++runs; });
  submit(one_, {launch(count)});
  one_.synchronize();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);                       // a deadlock would keep the test forever
    for (int i = 0; i < 100; ++i) {  // a condition on which threads of the parent wait lets a few pass
      submit(one_, {launch(count)});
      one_.synchronize();
    }
    _exit(runs == 101 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(runs, 1);
}

/// A device that is a queue and memory of the host.
class QueuedDevice final : public Device {
 public:
  explicit QueuedDevice(const char* name)
      : Device(name, interp_target(), std::make_unique<CountingAllocator>(name, true), no_code), queue_(name) {}
  std::unique_ptr<Kernel> load(const KernelInfo&, const UOp&, const std::string&) override { return nullptr; }
  bool is_async() const override { return true; }
  void synchronize() override { queue_.synchronize(); }
  Queue* queue() override { return &queue_; }

 private:
  HostQueue queue_;
};

/// Copies in rings of devices, each behind a kernel that changes what is copied, from several threads at once.
TEST_F(QueueTest, CopiesBetweenDevicesWaitForEachOtherAndNotForTheHost) {
  QueuedDevice a("A"), b("B");
  const BufferPtr x = Buffer::make(a, 1, DType::int32), y = Buffer::make(b, 1, DType::int32);
  const int32_t zero = 0;
  for (const BufferPtr& p : {x, y}) p->copyin(std::as_bytes(std::span(&zero, 1)));
  Calls add([](auto buffers, auto) { ++*static_cast<int32_t*>(buffers[0]); });
  const uint64_t waits = a.launches().waits() + b.launches().waits();
  for (int i = 0; i < 200; ++i) {
    void *px = x->handle(), *py = y->handle();
    submit(*a.queue(), {launch(add, std::span(&px, 1))});
    y->copy_from(*x);
    submit(*b.queue(), {launch(add, std::span(&py, 1))});
    x->copy_from(*y);
  }
  EXPECT_EQ(a.launches().waits() + b.launches().waits(), waits);
  int32_t result = 0;
  x->copyout(std::as_writable_bytes(std::span(&result, 1)));
  EXPECT_EQ(result, 400);
}

TEST_F(QueueTest, WhatWasCopiedOfALostResultIsLost) {
  QueuedDevice a("A"), b("B");
  const BufferPtr x = Buffer::make(a, 1, DType::int32), y = Buffer::make(b, 1, DType::int32);
  const int32_t zero = 0;
  x->copyin(std::as_bytes(std::span(&zero, 1)));
  Calls bad([](auto, auto) { throw DeviceError("broken"); });
  const uint64_t number = a.launches().begin();
  submit(*a.queue(), {launch(bad)});
  x->written_by(number);
  a.launches().end();
  y->copy_from(*x);
  int32_t result = 0;
  EXPECT_THROW(y->copyout(std::as_writable_bytes(std::span(&result, 1))), DeviceError);
}

}  // namespace
}  // namespace tinygrad::test
