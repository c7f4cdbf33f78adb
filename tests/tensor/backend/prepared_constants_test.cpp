// What jitted functions compute of weights alone: once, and again when the weights changed.
#include <gtest/gtest.h>

#include <tinygrad/counters.h>
#include <tinygrad/errors.h>
#include <tinygrad/tinygrad.h>

#include "support/captured_calls.h"

namespace tinygrad {
namespace {

constexpr int64_t size = 1 << 16;

class PreparedConstants : public testing::Test {
 protected:
  static Tensor weight(int seed) { return ((Tensor::arange(size) * (2 * seed + 1)) % 101).cast(DType::float32).realize(); }
  static Tensor input() { return (Tensor::arange(size) % 7).cast(DType::float32).realize(); }
  /// In two kernels, the second of which reads what the first one stored.
  static Tensor prepared(const Tensor& w) { return ((w * 2 + 1).contiguous().flip({0}) * 3).contiguous(); }
  static std::vector<float> expected(const Tensor& v, const Tensor& w) { return (input() + prepared(v) * prepared(w).flip({0})).tolist(); }
  auto layer() {
    return jit([this](const Tensor& x) { return x + prepared(v_) * prepared(w_).flip({0}); });
  }
  template <class F>
  static void capture(const F& f) {
    test::capture(f, input());
  }
  template <class F>
  static uint64_t kernels(const F& f) {
    return test::kernels_of_call(f, input());
  }

  Context on_cpu_{{.dev = "CPU"}};
  Tensor v_ = weight(1), w_ = weight(2);
};

TEST_F(PreparedConstants, AreComputedOnce) {
  const auto f = layer();
  capture(f);
  EXPECT_EQ(kernels(f), 1u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(input()).tolist(), expected(v_, w_));
}

TEST_F(PreparedConstants, AreComputedAgainWhenTheirWeightsChange) {
  const auto f = layer();
  capture(f);
  for (int seed = 3; seed < 6; ++seed) {
    (seed == 4 ? v_ : w_).assign(weight(seed)).realize();
    EXPECT_GT(kernels(f), 1u);
    EXPECT_EQ(kernels(f), 1u);
    EXPECT_EQ(f(input()).tolist(), expected(v_, w_));
  }
}

TEST_F(PreparedConstants, WithWeightsThatTheHostWritesToAreComputedEachTime) {
  const auto f = layer();
  capture(f);
  const auto memory = w_.host_memory();
  float* values = reinterpret_cast<float*>(memory.get());
  for (int i = 0; i < 3; ++i) {
    values[5] = float(100 + i);
    EXPECT_EQ(f(input()).tolist(), expected(v_, w_));
  }
}

TEST_F(PreparedConstants, AreNotWhatTheCallWrites) {
  const auto f = jit([this](const Tensor& x) {
    const Tensor y = (x + prepared(v_) * prepared(w_).flip({0})).realize();
    w_.assign(w_ + 1).realize();
    return y;
  });
  Tensor other = weight(2);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(f(input()).tolist(), expected(v_, other));
    other = (other + 1).realize();
  }
}

TEST_F(PreparedConstants, KeepOnlyWhatTheCallReads) {
  constexpr auto bytes = size * int64_t(sizeof(float));
  const int64_t before = GlobalCounters::mem_used;
  const auto f = layer();
  capture(f);
  EXPECT_GE(GlobalCounters::mem_used - before, 2 * bytes);
  EXPECT_LT(GlobalCounters::mem_used - before, 3 * bytes) << "what lies between the two kernels is freed";
}

TEST_F(PreparedConstants, TakeNoMoreMemoryThanAllowed) {
  const Context limit{{.pack_memory = 0}};
  const auto f = layer();
  capture(f);
  EXPECT_GT(kernels(f), 1u);
  EXPECT_EQ(f(input()).tolist(), expected(v_, w_));
}

TEST_F(PreparedConstants, WithoutMemoryAreComputedInTheCall) {
  constexpr auto bytes = size * int64_t(sizeof(float));
  const Tensor x = input();
  const std::vector<float> want = expected(v_, w_);
  const Context limit{{.memory_limit = GlobalCounters::mem_used + 6 * bytes}};
  const auto f = layer();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(x).tolist(), want);
}

TEST_F(PreparedConstants, ThatMemoryDidNotSufficeForAreComputedTheNextTime) {
  const auto f = layer();
  capture(f);
  const Tensor x = input();
  v_.assign(weight(3)).realize();
  w_.assign(weight(4)).realize();
  const std::vector<float> want = expected(v_, w_);
  constexpr auto bytes = size * int64_t(sizeof(float));
  for (const int64_t left : {0, 1, 2}) {
    const Context limit{{.memory_limit = GlobalCounters::mem_used + left * bytes}};
    try {
      f(x).realize();
    } catch (const OutOfMemoryError&) {  // of this many of what lies between kernels
    }
  }
  EXPECT_EQ(f(x).tolist(), want);
}

TEST_F(PreparedConstants, OfSavedCallsArePartOfThem) {
  const auto f = layer();
  capture(f);
  const std::string path = testing::TempDir() + "prepared_constants.jit";
  f.save(path);
  const LoadedJit loaded(path);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loaded({input()})[0].tolist(), expected(v_, w_));
}

TEST_F(PreparedConstants, TheWindowsOfAConvolutionAmongThem) {
  const Tensor w = Tensor::randn({64, 64, 3, 3}).realize(), x = Tensor::randn({1, 64, 32, 32}).realize();
  const auto convolved = [&](int wino) {
    const Context context{{.wino = wino}};
    const auto f = jit([&](const Tensor& image) { return image.conv2d(w, {}, {.padding = {1}}); });
    for (int i = 0; i < 3; ++i) f(x).realize();
    GlobalCounters::reset();
    const Tensor y = f(x).realize();
    EXPECT_EQ(GlobalCounters::kernel_count, wino ? 5u : 1u);
    return y;
  };
  const Tensor direct = convolved(0), winograd = convolved(1);
  EXPECT_LT((direct - winograd).abs().max().item(), 1e-3);
}

}  // namespace
}  // namespace tinygrad
