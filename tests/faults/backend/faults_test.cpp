// One scenario, a training step, a replay and copies, to files too, in which each allocation fails in turn: a typed error, nothing is lost
// or leaked, and the next operation works.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <stdexcept>

#include <tinygrad/tinygrad.h>

#include "faults/backend/failing_new.h"
#include "support/temp_folder.h"
#include "support/test_scale.h"
#include "tensor/backend/fake_hardware.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
using test::FailingMemalign;
using test::FailingNew;

/// Where graphs are built memory may run out as std::bad_alloc. What runs them says it in a type of its own.
auto typed(const auto& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw std::logic_error("std::bad_alloc is no OutOfMemoryError");
  }
}

/// A model, its optimizer and a jitted function, on one device; results go to the CPU and to a file and back.
class Scenario {
 public:
  explicit Scenario(const std::string& device, int64_t rows = 4) : on_device_({.dev = device}), device_(device), rows_(rows) {}

  /// As often as it takes until calls are captured; schedules and kernels are known then. The next time is a replay.
  void warm_up() {
    for (int i = 0; i < 2; ++i) run();
  }

  /// What all of it computes from the first weights on, as numbers.
  Floats run() {
    const Context training{{.training = true}};
    reset();
    optimizer_.zero_grad();
    const Tensor error = x_.matmul(w_) - 1, loss = (error * error).mean();
    loss.backward();
    optimizer_.step();
    typed([&] { w_.realize(); });
    Floats out = w_.tolist<float>();
    typed([&] { loss.realize(); });
    out.push_back(loss.item<float>());
    append(out, typed([&] { return forward_(x_); }));
    append(out, (x_.to("CPU").to(device_) + 1) * 2);
    const Tensor saved = (x_ * 4).to("DISK:" + folder_.path("x"));
    typed([&] { saved.realize(); });
    append(out, saved.to(device_) - 1);
    return out;
  }

  /// What run() gives but for rounding.
  Floats expected() const {
    const double first[3][2] = {{0.5, -1}, {0.25, 2}, {1, -0.5}};
    const auto x = [](int64_t i, int64_t k) { return double(i * 3 + k) / 64; };
    const auto product = [&](int64_t i, int j, const double(&w)[3][2]) {
      return x(i, 0) * w[0][j] + x(i, 1) * w[1][j] + x(i, 2) * w[2][j];
    };
    double trained[3][2], loss = 0;
    std::copy_n(&first[0][0], 6, &trained[0][0]);
    for (int64_t i = 0; i < rows_; ++i)
      for (int j = 0; j < 2; ++j) {
        const double error = product(i, j, first) - 1;
        loss += error * error / double(2 * rows_);
        for (int k = 0; k < 3; ++k) trained[k][j] -= rate * 2 * error * x(i, k) / double(2 * rows_);
      }
    Floats out;
    for (const auto& row : trained) out.insert(out.end(), {float(row[0]), float(row[1])});
    out.push_back(float(loss));
    for (int j = 0; j < 2; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < rows_; ++i) sum += 2 * std::max(0.0, product(i, j, trained));
      out.push_back(float(sum));
    }
    for (int64_t i = 0; i < 3 * rows_; ++i) out.push_back(float(x(0, i) + 1) * 2);
    for (int64_t i = 0; i < 3 * rows_; ++i) out.push_back(float(x(0, i)) * 4 - 1);
    return out;
  }

 private:
  static constexpr double rate = 0.5;

  static void append(Floats& to, const Tensor& from) {
    typed([&] { from.realize(); });
    for (float v : from.tolist<float>()) to.push_back(v);
  }

  void reset() {
    const Tensor first({{0.5f, -1.0f}, {0.25f, 2.0f}, {1.0f, -0.5f}});
    try {
      w_.assign(first);
      typed([&] { w_.realize(); });
    } catch (const DeviceError&) {  // a store that may have run in part
      w_.replace(first.contiguous());
    }
  }

  Context on_device_;
  const std::string device_;
  const int64_t rows_;
  const test::TempFolder folder_;
  Tensor x_ = (Tensor::arange(3 * rows_, {.dtype = DType::float32}).reshape({rows_, 3}) / 64).realize();
  Tensor w_ = Tensor::zeros({3, 2}).contiguous().realize();
  nn::optim::SGD optimizer_{std::span<const Tensor>(&w_, 1), {.lr = rate}};
  std::function<Tensor(const Tensor&)> forward_ = jit([this](const Tensor& x) {
    const Tensor hidden = x.matmul(w_).relu().realize();
    return (hidden * 2).sum(0);
  });
};

size_t in_use(const std::string& device) { return device_statistics(device).in_use; }

class Faults : public testing::Test {
 protected:
  Faults() { test::register_fake_hardware(); }
  ~Faults() override { test::Hardware::reset(); }
};

/// Runs it with the failures that `arm` makes, from the first to the last, and after each of them without. Each time is the first failure
/// of new tensors, so that all of them go the same way until then.
template <class Arm>
void fail_each(const std::string& device, const Arm& arm) {
  const Floats expected = Scenario(device).run();
  const size_t before = in_use(device);
  int64_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    ASSERT_LT(failures, 10000) << "it does more and more";
    Scenario scenario(device);
    scenario.warm_up();
    std::optional<Floats> got;
    const auto armed = arm(failures);
    try {
      got = scenario.run();
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {  // where graphs are built
    } catch (const std::logic_error& e) {
      ADD_FAILURE() << e.what() << ", at " << failures;
    }
    failed = armed->failed();
    armed->end();
    if (got) {
      EXPECT_EQ(*got, expected) << "without memory for it something was left out, at " << failures;
    }
    EXPECT_TRUE(failed || got);
    ASSERT_EQ(scenario.run(), expected) << "after the failure of allocation " << failures;
  }
  EXPECT_GT(failures, 5);
  EXPECT_EQ(in_use(device), before) << "after " << failures << " failures";
}

/// Memory that is cached would not be asked for.
class DeviceMemoryFaults : public Faults {
 protected:
  Context no_cache_{{.lru = false}};
};

TEST_F(DeviceMemoryFaults, OfTheCpu) {
  struct Armed {
    explicit Armed(int64_t number) : failing(std::in_place, number) {}
    bool failed() const { return FailingMemalign::failed(); }
    void end() { failing.reset(); }
    std::optional<FailingMemalign> failing;
  };
  fail_each("CPU", [](int64_t i) { return std::make_unique<Armed>(i); });
}

TEST_F(DeviceMemoryFaults, OfHardware) {
  struct Armed {
    explicit Armed(int64_t number) { memory().fail_in = int(number); }
    bool failed() const { return memory().fail_in < 0; }
    void end() { memory().fail_in = -1; }
    static test::CountingAllocator& memory() { return static_cast<test::CountingAllocator&>(Device::get("FAKEHW").allocator()); }
  };
  fail_each("FAKEHW", [](int64_t i) { return std::make_unique<Armed>(i); });
}

class HostMemoryFaults : public Faults, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(On, HostMemoryFaults, testing::Values("CPU", "INTERP", "FAKEHW"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(HostMemoryFaults, EachOperatorNew) {
  struct Armed {
    explicit Armed(int64_t number) : failing(std::in_place, number) {}
    bool failed() const { return FailingNew::failed(); }
    void end() { failing.reset(); }
    std::optional<FailingNew> failing;
  };
  fail_each(GetParam(), [](int64_t i) { return std::make_unique<Armed>(i); });
}

/// The same from the beginning: devices are opened, kernels compiled and loaded, calls captured and graphs made while memory runs out. No
/// cache knows a kernel, as each time has another number of rows; and so it is known what should come out. Not on the CPU: libLLVM does not
/// survive an operator new that throws.
class ColdFaults : public Faults, public testing::WithParamInterface<const char*> {
 protected:
  ColdFaults() { test::Hardware::get().graphs = true; }

  /// Number i: what came out, if anything did, when allocation `failing` failed.
  std::optional<Floats> run(int64_t i, int64_t failing) {
    const FailingNew armed(failing);
    try {
      return all_of(i);
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {  // where graphs are built
    } catch (const std::logic_error& e) {
      ADD_FAILURE() << e.what() << ", at " << failing;
    }
    return std::nullopt;
  }
  static Floats all_of(int64_t i) {
    Scenario scenario(device_of(i), rows_of(i));
    scenario.warm_up();
    return scenario.run();
  }
  static void expect_right(int64_t i, const Floats& got) {
    const Floats want = Scenario(device_of(i), rows_of(i)).expected();
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < want.size(); ++k) ASSERT_NEAR(got[k], want[k], 1e-4 * std::max(1.0f, std::abs(want[k]))) << k;
  }
  /// One that is not open.
  static std::string device_of(int64_t i) { return GetParam() + (":" + std::to_string(10 + i)); }
  static int64_t rows_of(int64_t i) { return 40 + i; }

 private:
  const Context in_this_thread_{{.ccache = false, .parallel = 0}};
};
INSTANTIATE_TEST_SUITE_P(On, ColdFaults, testing::Values("INTERP", "FAKEHW"), [](const auto& p) { return std::string(p.param); });

TEST_P(ColdFaults, OperatorNew) {
  for (const int64_t i : {0, 1}) ASSERT_TRUE(run(i, -1));  // what a process does once is not counted
  const int64_t tries = 150 * test::test_scale();
  int64_t all = FailingNew::count(), failures = 0;
  for (int64_t i = 2; i < tries + 2; ++i) {
    const int64_t failing = all * (i - 2) / tries;
    SCOPED_TRACE(failing);
    if (const std::optional<Floats> got = run(i, failing)) expect_right(i, *got);
    FailingNew::failed() ? ++failures : all = FailingNew::count();  // it allocates less than the one before
    expect_right(i, all_of(i));
    EXPECT_EQ(in_use(device_of(i)), 0u);
  }
  EXPECT_GT(failures, tries * 9 / 10);
}

}  // namespace
}  // namespace tinygrad
