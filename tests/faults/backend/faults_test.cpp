// One scenario, a training step, a replay and copies, in which each allocation fails in turn: a typed error, nothing is lost or leaked, and
// the next operation works.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include <tinygrad/tinygrad.h>

#include "faults/backend/failing_new.h"
#include "tensor/backend/fake_hardware.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
using test::FailingMemalign;
using test::FailingNew;

/// A model, its optimizer and a jitted function, on one device; results go to the CPU and back.
class Scenario {
 public:
  explicit Scenario(const std::string& device) : on_device_({.dev = device}), device_(device) {
    for (int i = 0; i < 3; ++i) run();  // captured; schedules and kernels are known
  }

  /// What all of it computes from the first weights on, as numbers.
  Floats run() {
    const Context training{{.training = true}};
    reset();
    optimizer_.zero_grad();
    const Tensor error = x_.matmul(w_) - 1, loss = (error * error).mean();
    loss.backward();
    optimizer_.step();
    Floats out = w_.tolist<float>();
    out.push_back(loss.item<float>());
    append(out, forward_(x_));
    append(out, (x_.to("CPU") + 1).to(device_) * 2);
    return out;
  }

 private:
  static void append(Floats& to, const Tensor& from) {
    for (float v : from.tolist<float>()) to.push_back(v);
  }

  void reset() {
    const Tensor first({{0.5f, -1.0f}, {0.25f, 2.0f}, {1.0f, -0.5f}});
    try {
      w_.assign(first);
      w_.realize();
    } catch (const DeviceError&) {  // a store that may have run in part
      w_.replace(first.contiguous());
    }
  }

  Context on_device_;
  const std::string device_;
  Tensor x_ = (Tensor::arange(12, {.dtype = DType::float32}).reshape({4, 3}) / 8).realize();
  Tensor w_ = Tensor::zeros({3, 2}).contiguous().realize();
  nn::optim::SGD optimizer_{std::span<const Tensor>(&w_, 1), {.lr = 0.5}};
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
    std::optional<Floats> got;
    const auto armed = arm(failures);
    try {
      got = scenario.run();
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {  // where graphs are built
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
    static test::CountingAllocator& memory() { return static_cast<test::CountingAllocator&>(runtime::open_device("FAKEHW").allocator()); }
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

}  // namespace
}  // namespace tinygrad
