// jit: captured once, replayed with other arguments.
#include <gtest/gtest.h>

#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int>;

class JitOn : public test::EveryDevice {};
INSTANTIATE_TEST_SUITE_P(All, JitOn, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

TEST_P(JitOn, ReplaysWithOtherArguments) {
  int runs = 0;
  const auto f = jit([&](const Tensor& a, const Tensor& b) {
    ++runs;
    return (a + b) * 2;
  });
  for (int i = 0; i < 6; ++i) {
    const Tensor y = f(Tensor({1.0 + i, 2.0}), Tensor({10.0, 20.0 * i}));
    EXPECT_EQ(y.tolist(), (Floats{22.0f + 2 * float(i), 4.0f + 40 * float(i)}));
  }
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(f.captured());
  f.reset();
  EXPECT_FALSE(f.captured());
  EXPECT_EQ(f(Tensor({1.0, 2.0, 3.0}), Tensor({0.0, 0.0, 1.0})).tolist(), (Floats{2, 4, 8}));
  EXPECT_EQ(runs, 3);
}

TEST_P(JitOn, CapturedAtOnceTheFunctionRunsOnce) {
  int runs = 0;
  Tensor total = Tensor({0.0, 0.0}).realize();
  const auto f = jit(
      [&](const Tensor& a) {
        ++runs;
        total.assign(total + a);
        return a * 2 + Tensor::rand({2}) * 0;
      },
      {.at_once = true});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(Tensor({1.0 + i, 2.0})).tolist(), (Floats{2.0f + 2 * float(i), 4}));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(total.tolist(), (Floats{10, 8}));
  const auto reads = jit([](const Tensor& a) { return a * a.sum().item<float>(); }, {.at_once = true});
  EXPECT_THROW(reads(Tensor({1.0, 2.0})), JitError);
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
    const std::map<std::string, Tensor> given{{"x", Tensor({5.0})}, {"y", Tensor({1.0 * i, 2.0})}};
    const auto [q, named] = f(p, given, std::optional(Tensor(4.0)));
    EXPECT_EQ(q.a.item(), i + 4);
    EXPECT_EQ(q.more.at(0).item(), 4 * i);
    EXPECT_EQ(q.more.at(1).item(), 9);
    EXPECT_EQ(named.at("x").item(), 5 + i);
    EXPECT_EQ(named.at("y").tolist(), (Floats{2.0f * float(i), 2.0f + float(i)}));
  }
  EXPECT_TRUE(f.captured());
  EXPECT_THROW(f(Pair{}, std::map<std::string, Tensor>{}, std::nullopt), JitError);
}

TEST_P(JitOn, TextsAreToldApart) {
  const auto f = jit([](const std::vector<std::string>& names, const Tensor& x) { return x * double(names.size()); });
  const std::vector<std::string> two{"a", "b"}, one{R"(a", "b)"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(f(two, Tensor({1.0 * i})).item(), 2 * i);
    EXPECT_EQ(f(one, Tensor({1.0 * i})).item(), i);
  }
}

TEST_P(JitOn, ResultsThatAreArgumentsOrWeights) {
  const Tensor weight = Tensor({7.0, 8.0}).realize();
  const auto f = jit([&](const Tensor& x, const Tensor& maybe) {
    return std::array{x, x.reshape({2, 1})[1], weight, x + 1, maybe, Tensor::zeros({0, 3}), Tensor({5.0})};
  });
  for (int i = 0; i < 4; ++i) {
    const Tensor x({1.0 * i, 3.0});
    const auto r = f(x, Tensor());
    EXPECT_EQ(r[0].tolist(), (Floats{float(i), 3}));
    EXPECT_EQ(r[1].tolist(), (Floats{3}));
    EXPECT_EQ(r[2].tolist(), (Floats{7, 8}));
    EXPECT_EQ(r[3].tolist(), (Floats{float(i) + 1, 4}));
    EXPECT_FALSE(r[4].defined());
    EXPECT_EQ(r[5].shape(), (Sizes{0, 3}));
    EXPECT_EQ(r[6].tolist(), (Floats{5}));
    Tensor changed = r[6];  // the next call's is another
    changed += 1;
    changed.realize();
  }
  EXPECT_TRUE(f.captured());
}

TEST_P(JitOn, RandomNumbersAreThoseWithoutJit) {
  const auto draw = [](const Tensor& x) { return x + Tensor::rand({3}) + (Tensor::randn({3}) * 0).realize(); };
  const auto run = [&](const auto& f) {
    Tensor::manual_seed(7);
    std::vector<Floats> out;
    for (int i = 0; i < 5; ++i) out.push_back(f(Tensor({0.0, 0.0, 1.0 * i})).tolist());
    return out;
  };
  const auto f = jit(draw);
  const auto expected = run(draw);
  EXPECT_EQ(run(f), expected);
  EXPECT_TRUE(f.captured());
  EXPECT_EQ(run(f), expected);
  EXPECT_NE(expected[3], expected[4]);
}

TEST_P(JitOn, VariablesAreLaunchArguments) {
  const Variable n("n", 1, 10);
  const Tensor all = Tensor::arange(10).cast(DType::float32).realize();
  int runs = 0;
  const auto f = jit([&](const Variable& count) {
    ++runs;
    return all[{Slice{.stop = count}}].sum();
  });
  const auto g = jit([&](const Tensor& part) { return part.sum() * 2; });
  for (int i = 1; i <= 6; ++i) {
    EXPECT_EQ(f(n.bind(i)).item(), i * (i - 1) / 2);
    EXPECT_EQ(g(all[{Slice{.stop = n.bind(i)}}]).item(), i * (i - 1));
  }
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(g.captured());
  EXPECT_THROW(f(Variable("m", 1, 10).bind(2)), JitError);
  EXPECT_THROW(n.bind(11), ValueError);
}

TEST_P(JitOn, ValuesMeetWhatWasAssumedOfSizes) {
  const Variable n("n", 1, 10), m("m", 1, 10);
  const Tensor all = Tensor::arange(100).reshape({10, 10}).cast(DType::float32).realize();
  const auto f =
      jit([&](const Variable& rows, const Variable& columns) { return all.shrink({{0, rows}, {0, columns}}).reshape({2, 6}).sum(0); });
  f(n.bind(3), m.bind(4));
  f(n.bind(4), m.bind(3));
  EXPECT_TRUE(f.captured());
  EXPECT_EQ(f(n.bind(6), m.bind(2)).tolist(), (Floats{30, 32, 50, 52, 70, 72}));
  EXPECT_THROW(f(n.bind(6), m.bind(3)), JitError);
  EXPECT_THROW(f(n.bind(2), m.bind(5)), JitError);
}

TEST_P(JitOn, OffByOption) {
  const Context off{{.jit = 0}};
  int runs = 0;
  const auto f = jit([&](const Tensor& x) { return x * ++runs; });
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(f(Tensor({2.0})).item(), 2 * i);
  EXPECT_FALSE(f.captured());
}

TEST_P(JitOn, SideEffectsOnTheHostHappenInRecordedCallsOnly) {
  int calls = 0;
  const auto f = jit([&](const Tensor& x) {
    ++calls;
    return x * 2;
  });
  for (int i = 0; i < 6; ++i) f(Tensor({1.0}));
  EXPECT_EQ(calls, 2);
}

TEST_P(JitOn, CopiesBetweenDevices) {
  const std::string other = GetParam() == "CPU" ? "INTERP" : "CPU";
  const auto f = jit([&](const Tensor& x) { return ((x + 1).to(other) * 2).to(GetParam()) + 1; });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(Tensor({1.0 * i, 2.0})).tolist(), (Floats{2.0f * float(i) + 3, 7}));
  EXPECT_TRUE(f.captured());
}

TEST_P(JitOn, AFunctionOfAFunction) {
  const auto inner = jit([](const Tensor& x) { return x + 1; });
  const auto outer = jit([&](const Tensor& x) { return inner(x) * 3; });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(outer(Tensor({1.0 * i})).item(), 3 * (i + 1));
  EXPECT_TRUE(outer.captured());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(inner(Tensor({1.0 * i})).item(), i + 1);
}

// Memory between the kernels that are left is no memory of those that run once.
TEST(Jit, WhatIsPrunedNeedsNoMemoryOfTheOthers) {
  const Tensor w = Tensor::rand({8, 8}).realize();
  const auto f =
      jit([&](const Tensor& x) { return (x.matmul((w * 2).contiguous()).contiguous().sum(1) + 1).contiguous() * 2; }, {.prune = true});
  for (int i = 0; i < 4; ++i) {
    const Tensor x = Tensor::rand({4, 8}).realize();
    const std::vector<float> got = f(x).tolist(), want = ((x.matmul(w * 2).sum(1) + 1) * 2).tolist();
    for (size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-4);
  }
}

}  // namespace
}  // namespace tinygrad
