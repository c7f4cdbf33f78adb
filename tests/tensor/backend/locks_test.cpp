// What one thread's compiling has to do with others: nothing, unless they use the same memory or values.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include <tinygrad/tinygrad.h>

#include "device/fake_device.h"
#include "tensor/claims.h"
#include "tensor/memory.h"

namespace tinygrad {
namespace {

using namespace std::chrono_literals;

/// Holds everybody who compiles for the device LATCH while it is closed.
class Latch {
 public:
  static Latch& instance() {
    static auto* latch = new Latch;
    return *latch;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiting_ = 0;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !closed_; });
  }
  void wait_for_somebody() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int waiting_ = 0;
};

class NoKernel final : public Kernel {
 public:
  std::optional<double> launch(std::span<void* const>, std::span<const int64_t>, const LaunchDims&, bool) override { return std::nullopt; }
};

constexpr CodePath latched_code{.renderer = "LATCH",
                                .render = [](const Target&, const UOp&, const KernelInfo& info) { return info.name; },
                                .compile =
                                    [](const Target&, const std::string&) {
                                      Latch::instance().pass();
                                      return std::string();
                                    }};

class LatchedDevice final : public Device {
 public:
  explicit LatchedDevice(std::string_view name)
      : Device(name, interp_target(), std::make_unique<test::CountingAllocator>(std::string(name), true), latched_code) {}
  std::unique_ptr<Kernel> load(const KernelInfo&, const UOp&, const std::string&) override { return std::make_unique<NoKernel>(); }
};

/// Other tests go over all devices that work.
bool latch_works = false;

class Locks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static constexpr CodePath paths[] = {latched_code};
    register_backend(
        {.name = "LATCH",
         .may_be_default = false,
         .unavailable = [] { return std::string(latch_works ? "" : "only the tests of locks have it"); },
         .code_paths = paths,
         .open = [](const DeviceChoice& choice) -> std::unique_ptr<Device> { return std::make_unique<LatchedDevice>(choice.name); }});
  }
  void SetUp() override {
    latch_works = true;
    Latch::instance().close();
  }
  void TearDown() override {
    Latch::instance().open();
    latch_works = false;
  }

  /// A value that is not compiled before the latch opens; each of another number is another kernel.
  static Tensor held(int number) { return (Tensor::ones({number}, {.device = "LATCH"}).contiguous() + 1) * number; }
};

/// Whether the work ends while the latch is closed. Opens it if not, so that it ends at all.
template <class Work>
bool ends_meanwhile(const Work& work) {
  std::future<void> done = std::async(std::launch::async, work);
  const bool ended = done.wait_for(120s) == std::future_status::ready;
  if (!ended) Latch::instance().open();
  done.get();
  return ended;
}

TEST_F(Locks, AHeldCompilerHoldsNobodyElse) {
  std::thread holder([] { held(3).realize(); });
  Latch::instance().wait_for_somebody();
  const tensor::WaitTimes before = tensor::wait_times();
  const auto start = std::chrono::steady_clock::now();
  const bool ended = ends_meanwhile([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 7; ++t)
      threads.emplace_back([t] {
        Tensor state = Tensor::zeros({64}).contiguous().realize();
        const auto step = jit([&](const Tensor& x) { state.assign(state + x); });
        const Tensor one = Tensor::ones({64}).contiguous().realize();
        for (int i = 0; i < 1000; ++i) step(one);
        EXPECT_TRUE(step.captured());
        EXPECT_EQ(state.sum().item(), 64000);
        for (int i = 0; i < 100; ++i) EXPECT_EQ((one * i + t).realize().sum().item(), 64 * (i + t));
      });
    for (std::thread& t : threads) t.join();
  });
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  const tensor::WaitTimes after = tensor::wait_times();
  const std::chrono::duration<double> claims = after.claims - before.claims, states = after.states - before.states;
  EXPECT_TRUE(ended);
  EXPECT_EQ(claims.count(), 0);
  std::printf("7 threads: %.2f s each; they waited %.3f s for the lock of the states, all together\n", taken.count(), states.count());
  Latch::instance().open();
  holder.join();
}

TEST_F(Locks, WhoNeedsTheSameValueWaitsForIt) {
  const Tensor x = held(5), y = x * 2;
  std::thread first([&] { x.realize(); });
  Latch::instance().wait_for_somebody();
  std::atomic<bool> done{false};
  std::thread second([&] {
    x.realize();
    done = true;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(done);
  Latch::instance().open();
  first.join();
  second.join();
  EXPECT_TRUE(done);
}

/// A store to memory that is being read waits for who reads it.
TEST_F(Locks, WhoWritesWhatIsReadWaits) {
  Tensor state = Tensor::zeros({7}, {.device = "LATCH"});
  state = Tensor::from_uop(state.contiguous().uop());
  Latch::instance().open();
  state.realize();
  Latch::instance().close();
  const Tensor sum = state * 3 + 7;
  std::thread reader([&] { sum.realize(); });
  Latch::instance().wait_for_somebody();
  const std::vector<int> sevens(7, 7);
  Tensor other = Tensor::ones({7}).contiguous().realize();
  EXPECT_TRUE(ends_meanwhile([&] { (other + 1).realize(); }));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    state.assign(state + 1).realize();
    done = true;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(done);
  Latch::instance().open();
  reader.join();
  writer.join();
}

/// Somebody who waits for another thread can be stopped.
TEST_F(Locks, WaitingCanBeCancelled) {
  const Tensor x = held(9);
  std::thread first([&] { x.realize(); });
  Latch::instance().wait_for_somebody();
  std::stop_source source;
  std::thread second([&] {
    const Context cancellable{{.cancel = source.get_token()}};
    EXPECT_THROW(x.realize(), Cancelled);
  });
  std::this_thread::sleep_for(50ms);
  source.request_stop();
  second.join();
  Latch::instance().open();
  first.join();
  EXPECT_EQ(x.device(), "LATCH");
}

uint32_t users_of(const Tensor& t) { return buffer_of(tensor::whole_buffer(t.uop())).users(); }

/// Replays look at what other threads compute only where graphs read their memory.
TEST_F(Locks, MemoryKnowsWhetherGraphsReadIt) {
  Tensor state = Tensor::zeros({64}).contiguous().realize();
  EXPECT_EQ(users_of(state), 0);
  const auto step = jit([&](const Tensor& x) { state.assign(state * 0.5 + x); });
  const Tensor x = Tensor::ones({64}).contiguous().realize();
  for (int i = 0; i < 5; ++i) step(x);
  EXPECT_TRUE(step.captured());
  EXPECT_EQ(users_of(state), 0);
  EXPECT_EQ(users_of(x), 0);
  {
    const Tensor view = state.reshape({8, 8}).T();
    EXPECT_EQ(users_of(state), 0);
    const Tensor reader = view + 1;
    EXPECT_GT(users_of(state), 0);
    const float before = reader.max().item();
    step(x);
    EXPECT_EQ(reader.max().item(), before);
  }
  EXPECT_EQ(users_of(state), 0);
}

/// What another thread overwrites while a value is assigned.
TEST_F(Locks, AnAssignedValueIsThatOfWhenItIsStored) {
  Tensor x = Tensor({1.0, 2.0, 3.0}).realize(), twice = x * 2;
  const Tensor view = twice.reshape({3, 1});
  x.assign(x + 10);
  std::thread first([&] { Tensor::realize(std::vector{x, held(13)}); });
  Latch::instance().wait_for_somebody();
  std::thread second([&] { twice += 1; });  // waits: it is computed, as it reads what is overwritten
  std::this_thread::sleep_for(30ms);
  Latch::instance().open();
  first.join();
  second.join();
  EXPECT_EQ(twice.tolist(), (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(view.tolist(), (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(x.tolist(), (std::vector<float>{11, 12, 13}));
}

/// What is made, while memory is overwritten, out of parts of a tensor that reads it.
TEST_F(Locks, WhatIsMadeTooLateIsAnError) {
  Latch::instance().open();
  Tensor x = Tensor::ones({11}, {.device = "LATCH"}).contiguous().realize();
  const Tensor p = Tensor::ones({11}, {.device = "LATCH"}).contiguous().realize();
  const Tensor loss = ((x * 2).exp() * p).sum();
  Latch::instance().close();
  std::thread first([&] { x.assign(x + 10).realize(); });
  Latch::instance().wait_for_somebody();
  const Tensor late = loss.gradient(std::vector{p})[0];
  Latch::instance().open();
  first.join();
  EXPECT_THROW(late.realize(), ValueError);
  EXPECT_NO_THROW(loss.realize());
}

/// Stores that wait, and copies that are not made yet, are of what is there before a replay.
TEST_F(Locks, ReplaysComputeFirstWhatWaitsForWhatTheyWrite) {
  Tensor w = Tensor({1.0, 2.0}).realize(), other = Tensor({0.0, 0.0}).realize();
  const auto step = jit([&](const Tensor& x) { w += x; });
  const Tensor ten = Tensor({10.0, 10.0}).realize();
  for (int i = 0; i < 4; ++i) step(ten);
  EXPECT_TRUE(step.captured());
  const Tensor old = w.clone(), view = old.reshape({2, 1});
  other.assign(w * 2);
  step(ten);
  EXPECT_EQ(old.tolist(), (std::vector<float>{41, 42}));
  EXPECT_EQ(view.tolist(), (std::vector<float>{41, 42}));
  EXPECT_EQ(other.tolist(), (std::vector<float>{82, 84}));
  EXPECT_EQ(w.tolist(), (std::vector<float>{51, 52}));
}

/// A function that looks only at the shape of a tensor that changes does the same each time.
TEST_F(Locks, AFunctionThatReadsAShapeIsCaptured) {
  Tensor s = Tensor({1.0, 2.0}).realize();
  const Tensor a = Tensor({3.0, 4.0}).realize();
  int runs = 0;
  const auto f = jit([&](const Tensor& x) {
    ++runs;
    return (x * 2).reshape(s.shape());
  });
  for (int i = 0; i < 8; ++i) {
    s += 1;
    EXPECT_EQ(f(a).tolist(), (std::vector<float>{6, 8}));
  }
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(s.tolist(), (std::vector<float>{9, 10}));
}

/// Calls of one function with other forms of arguments, in several threads.
TEST_F(Locks, OneFunctionThatCountsWithOtherArguments) {
  for (int round = 0; round < 10; ++round) {
    Tensor count = Tensor({0.0}).realize();
    const auto f = jit([&](const Tensor& x) { count += x.sum(); });
    std::vector<std::thread> threads;
    for (int t = 1; t <= 4; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) f(Tensor::ones({t}));
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(count.item(), 20 * (1 + 2 + 3 + 4)) << round;
  }
}

/// A realize that fails gives back what it had claimed.
TEST_F(Locks, AFailedRealizeIsInNobodysWay) {
  Latch::instance().open();
  Tensor state = Tensor::ones({4}).contiguous().realize();
  for (int i = 0; i < 3; ++i) {
    std::stop_source source;
    source.request_stop();
    const Context cancelled{{.cancel = source.get_token()}};
    state.assign(state + i);
    EXPECT_THROW(state.realize(), Cancelled);
  }
  EXPECT_EQ(state.sum().item(), 16);
}

}  // namespace
}  // namespace tinygrad
