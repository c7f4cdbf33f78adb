// jit: captured once, replayed with other arguments.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int>;

class JitOn : public testing::TestWithParam<const char*> {
 protected:
  Context on_device_{{.dev = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(All, JitOn, testing::Values("CPU", "INTERP"), [](const auto& p) { return std::string(p.param); });

TEST_P(JitOn, ReplaysWithOtherArguments) {
  int runs = 0;
  const auto f = jit([&](const Tensor& a, const Tensor& b) {
    ++runs;
    return (a + b) * 2;
  });
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(f(Tensor({1.0 + i, 2.0}), Tensor({10.0, 20.0 * i})).tolist(), (Floats{22.0f + 2 * i, 4.0f + 40 * i}));
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(f.captured());
  f.reset();
  EXPECT_FALSE(f.captured());
  EXPECT_EQ(f(Tensor({1.0, 2.0, 3.0}), Tensor({0.0, 0.0, 1.0})).tolist(), (Floats{2, 4, 8}));
  EXPECT_EQ(runs, 3);
}

TEST_P(JitOn, AReplayLaunchesTheKernelsOfACall) {
  const auto f = jit([&](const Tensor& a) { return ((a + 1).realize().sum() * a).realize(); });
  for (int i = 0; i < 3; ++i) f(Tensor({1.0, 2.0}).realize());
  const Tensor x = Tensor({1.0, 2.0}).realize();
  GlobalCounters::reset();
  const Tensor y = f(x);
  EXPECT_EQ(GlobalCounters::kernel_count, 2u);
  EXPECT_EQ(y.tolist(), (Floats{5, 10}));
}

TEST_P(JitOn, Containers) {
  struct Pair {
    Tensor a;
    std::vector<Tensor> more;
  };
  const auto f = jit([](const Pair& p, const std::map<std::string, Tensor>& named, const std::optional<Tensor>& maybe) {
    std::map<std::string, Tensor> out;
    for (const auto& [name, t] : named) out[name] = t + p.a;
    return std::tuple(Pair{p.a + *maybe, {p.more[0] * 2, p.more[1] * 3}}, out);
  });
  for (int i = 0; i < 4; ++i) {
    const Pair p{Tensor({1.0 * i}), {Tensor({2.0 * i}), Tensor({3.0})}};
    const auto [q, named] =
        f(p, std::map<std::string, Tensor>{{"x", Tensor({5.0})}, {"y", Tensor({1.0 * i, 2.0})}}, std::optional(Tensor(4.0)));
    EXPECT_EQ(q.a.item(), i + 4);
    EXPECT_EQ(q.more.at(0).item(), 4 * i);
    EXPECT_EQ(q.more.at(1).item(), 9);
    EXPECT_EQ(named.at("x").item(), 5 + i);
    EXPECT_EQ(named.at("y").tolist(), (Floats{2.0f * i, 2.0f + i}));
  }
  EXPECT_TRUE(f.captured());
}

}  // namespace
}  // namespace tinygrad
