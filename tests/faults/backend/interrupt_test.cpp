// Computations that are cancelled: wherever that is, all tensors hold what they held, and the same can be computed again.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <stop_token>
#include <thread>

#include <tinygrad/tinygrad.h>

#include "support/temp_folder.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
namespace state = nn::state;

constexpr int64_t kNever = int64_t{1} << 60;

/// The process's check as a counter: the poll of a number is the one that cancels.
class CancelAt {
 public:
  explicit CancelAt(int64_t number) {
    left() = number;
    set_interrupt_check([] {
      if (left().fetch_sub(1) == 0) throw Cancelled("test");
    });
  }
  ~CancelAt() { set_interrupt_check(nullptr); }
  CancelAt(const CancelAt&) = delete;
  CancelAt& operator=(const CancelAt&) = delete;

  static bool cancelled() { return left() < 0; }
  static int64_t asked(int64_t number) { return number - left(); }

 private:
  static std::atomic<int64_t>& left() {
    static std::atomic<int64_t> n;
    return n;
  }
};

/// Things that programs do, one after another. Each of the steps does the same however often it was cancelled before.
class Program {
 public:
  explicit Program(const std::string& device, int64_t n) : on_device_({.dev = device}), n_(n) {
    for (int i = 0; i < 3; ++i) counting_(x_);  // what was captured is replayed later
    total_.assign(Tensor::zeros({1})).realize();
    w_.assign(w_ * 2);
    w_[{0}].assign(Tensor::ones({n_}));
    count_.assign(count_ + w_[{1}].sum());
  }

  size_t steps() const { return all_steps().size(); }
  void run(size_t step) { all_steps()[step](*this); }

  /// All that can be seen of it.
  Floats values() const {
    Floats out;
    const auto add = [&](const Tensor& t) {
      const Floats v = t.tolist();
      out.insert(out.end(), v.begin(), v.end());
    };
    for (const Tensor& t : {x_, w_, view_, late_, count_, total_, product_, p_, q_, copy_, file_, loaded_})
      if (t.defined()) add(t);
    if (p_.grad().defined()) add(p_.grad());
    return out;
  }

 private:
  using Step = void (*)(Program&);
  static const std::vector<Step>& all_steps() {
    static const std::vector<Step> all = {
        [](Program& p) { Tensor::realize(std::vector<Tensor>{p.late_, p.w_, p.count_}); },  // stores, and who reads what was before
        [](Program& p) { p.product_ = (p.x_.matmul(p.w_).relu().realize().matmul(p.x_) / 64).realize(); },
        [](Program& p) { p.product_.sum().item(); },
        [](Program& p) { p.copy_ = p.w_.clone().realize(); },
        [](Program& p) { p.counted_ = p.counting_(p.x_); },  // a replay that changes state
        [](Program& p) { p.pure_(p.x_); },                   // recorded
        [](Program& p) { p.pure_(p.x_); },                   // captured
        [](Program& p) { p.pure_(p.x_); },                   // replayed
        [](Program& p) {
          if (!p.p_.grad().defined()) (p.x_.matmul(p.p_) * p.q_).sum().backward();
          Tensor::realize(std::vector<Tensor>{p.p_.grad(), p.q_.grad()});
        },
        [](Program& p) { p.file_ = p.x_.to("DISK:" + p.folder_.path("x")); },
        [](Program& p) {
          state::safe_save({{"w", p.w_}, {"x", p.x_}}, p.folder_.path("state"));
          p.loaded_ = state::safe_load(Tensor::from_file(p.folder_.path("state"))).at("w").to("").realize();
        },
    };
    return all;
  }

  Context on_device_;
  const int64_t n_;
  const test::TempFolder folder_;
  Tensor x_ = (Tensor::arange(n_ * n_, {.dtype = DType::float32}).reshape({n_, n_}) / 64 - 1).realize();
  Tensor w_ = (Tensor::arange(n_ * n_, {.dtype = DType::float32}).reshape({n_, n_}) / 32).contiguous().realize();
  Tensor view_ = w_[{Slice{.start = 1, .stop = 3}}], late_ = w_ + 1;
  Tensor count_ = Tensor::zeros({1}).contiguous().realize(), total_ = Tensor::zeros({1}).contiguous().realize();
  Tensor p_ = Tensor::ones({n_, n_}).contiguous().realize(), q_ = Tensor::full({n_, n_}, 2.0f).contiguous().realize();
  Tensor product_, copy_, file_, loaded_, counted_;
  std::function<Tensor(const Tensor&)> counting_ = jit([this](const Tensor& x) {
    const Tensor hidden = x.matmul(p_).realize();
    total_.assign(total_ + hidden.sum());
    return hidden.matmul(x) + total_;
  });
  std::function<Tensor(const Tensor&)> pure_ = jit([this](const Tensor& x) { return x.matmul(q_).relu().realize().matmul(x); });
};

Floats uncancelled(const std::string& device, int64_t n) {
  Program p(device, n);
  for (size_t i = 0; i < p.steps(); ++i) p.run(i);
  return p.values();
}

/// False if the poll of this number did not come.
bool cancel_at(const std::string& device, int64_t n, int64_t number, const Floats& expected) {
  Program p(device, n);
  bool cancelled = false;
  {
    const CancelAt armed(number);
    for (size_t i = 0; i < p.steps(); ++i) {
      try {
        p.run(i);
        continue;
      } catch (const Cancelled&) {
        EXPECT_TRUE(CancelAt::cancelled());
      }
      cancelled = true;
      if (number % 3 == 0) p.values();  // reading in between changes nothing
      p.run(i);
    }
  }
  EXPECT_EQ(p.values(), expected) << "cancelled at poll " << number;
  return cancelled;
}

class Interrupts : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(On, Interrupts, testing::Values("CPU", "INTERP"), [](const auto& p) { return std::string(p.param); });

TEST_P(Interrupts, AtEachPoll) {
  const Floats expected = uncancelled(GetParam(), 6);
  ASSERT_EQ(uncancelled(GetParam(), 6), expected);
  int64_t polls = 0;
  while (cancel_at(GetParam(), 6, polls, expected)) {
    ASSERT_FALSE(testing::Test::HasFailure());
    ASSERT_LT(++polls, 5000);
  }
  EXPECT_GT(polls, 20);
}

/// Kernels that no cache knows, as each time has another size: what schedules, lowers and compiles is cancelled too.
TEST_P(Interrupts, WhileItCompiles) {
  const Context no_cache{{.ccache = false}};
  int64_t polls = 0;
  {
    const CancelAt counting(kNever);
    uncancelled(GetParam(), 40);
    polls = CancelAt::asked(kNever);
  }
  EXPECT_GT(polls, 200);
  const int64_t tries = 6 * test::test_scale();
  for (int64_t i = 0; i < tries; ++i) {
    const int64_t n = 41 + i, number = polls * (2 * i + 1) / (2 * tries);
    SCOPED_TRACE(number);
    Program p(GetParam(), n);
    {
      const CancelAt armed(number);
      for (size_t k = 0; k < p.steps(); ++k) {
        try {
          p.run(k);
        } catch (const Cancelled&) {
          p.run(k);
        }
      }
    }
    EXPECT_EQ(p.values(), uncancelled(GetParam(), n));
  }
}

/// A chain of products that takes far longer than the test waits; ones, so that its value is known.
Tensor long_chain(int64_t n, int links) {
  Tensor x = Tensor::ones({n, n}).contiguous().realize();
  const Tensor w = Tensor::full({n, n}, 1.0 / double(n)).contiguous().realize();
  for (int i = 0; i < links; ++i) x = x.matmul(w);
  return x;
}

TEST(Cancel, ByAnotherThread) {
  const Tensor first = Tensor::ones({4}).contiguous().realize();
  const Tensor chain = long_chain(1024, 300);
  std::stop_source source;
  const std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    source.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  {
    const Context guard{{.cancel = source.get_token()}};
    EXPECT_THROW(chain.realize(), Cancelled);
    EXPECT_THROW((first + 1).realize(), Cancelled) << "until the Context ends";
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ((first + 1).tolist(), (Floats{2, 2, 2, 2}));
  EXPECT_EQ((long_chain(64, 3)[{0, 0}].item()), 1);
}

/// Who waits for a kernel that a cancelled thread was compiling makes it.
TEST(Cancel, OthersGoOn) {
  std::mt19937 random(3);
  for (int round = 0; round < 10; ++round) {
    const int64_t n = 1000 + round;
    const auto value = [&] { return (Tensor::arange(n, {.dtype = DType::float32}) * 3).sum(); };
    std::stop_source source;
    std::thread cancelled([&] {
      const Context guard{{.cancel = source.get_token()}};
      try {
        value().realize();
      } catch (const Cancelled&) {}
    });
    std::thread other([&] { EXPECT_EQ(value().item(), float(n) * float(n - 1) / 2 * 3); });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    source.request_stop();
    cancelled.join();
    other.join();
  }
}

TEST(Cancel, OfALoader) {
  const auto slow = [](const ExampleRequest& r) {
    for (int i = 0; i < 1000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      check_interrupt();
    }
    return Example{HostArray(std::vector<float>{float(r.index)})};
  };
  for (int threads : {0, 2}) {
    std::stop_source source;
    const std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      source.request_stop();
    });
    const Context guard{{.cancel = source.get_token()}};
    DataLoader loader({.size = 100, .decode = slow}, {.batch_size = 10, .threads = threads});
    EXPECT_THROW(loader.begin(), Cancelled);
  }
}

}  // namespace
}  // namespace tinygrad
