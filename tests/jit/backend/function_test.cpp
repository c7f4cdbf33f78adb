// function: graphs as functions with gradients of their own; custom_kernel: kernels written as graph nodes.
#include <gtest/gtest.h>

#include <cmath>

#include <tinygrad/tinygrad.h>

#include "runtime/every_device.h"

#include "shape/shape.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

using Floats = std::vector<float>;

class FunctionsOn : public test::EveryDevice {};
INSTANTIATE_TEST_SUITE_P(All, FunctionsOn, testing::ValuesIn(test::quick_devices()), test::device_test_name);

TEST_P(FunctionsOn, ComputesWhatTheFunctionDoes) {
  const Tensor w({2.0, 3.0});
  const auto f = function([&](const Tensor& x, const Tensor& y) { return (x * w + y).relu(); });
  const Tensor x({1.0, -4.0}), y({0.5, 1.0});
  EXPECT_EQ(f(x, y).tolist(), (Floats{2.5, 0}));
  const std::vector<Tensor> g = f(x, y).sum().gradient({x, y, w});
  EXPECT_EQ(g[0].tolist(), (Floats{2, 0}));
  EXPECT_EQ(g[1].tolist(), (Floats{1, 0}));
  EXPECT_EQ(g[2].tolist(), (Floats{1, 0}));
}

TEST_P(FunctionsOn, AGradientOfItsOwn) {
  const auto clipped = function([](const Tensor& x) { return x.clamp(-1, 1); },
                                {.name = "straight_through", .gradient = [](auto g, auto, auto) { return std::vector<Tensor>{g[0] * 3}; }});
  const Tensor x({-2.0, 0.5, 4.0});
  EXPECT_EQ(clipped(x).tolist(), (Floats{-1, 0.5, 1}));
  EXPECT_EQ((clipped(x) * 2).sum().gradient({x})[0].tolist(), (Floats{6, 6, 6}));
  (clipped(x * 2) * Tensor({1.0, 2.0, 3.0})).sum().backward();
  EXPECT_EQ(x.grad().tolist(), (Floats{6, 12, 18}));
}

TEST_P(FunctionsOn, GradientsSeeInputsAndOutputs) {
  const auto exp_times = function([](const Tensor& x, const Tensor& y) { return std::pair(x.exp(), x * y); },
                                  {.name = "exp_times", .gradient = [](auto g, auto in, auto out) {
                                     return std::vector<Tensor>{g[0] * out[0] + g[1] * in[1], g[1] * in[0]};
                                   }});
  const Tensor x({0.0, 1.0}), y({3.0, 5.0});
  const auto [e, p] = exp_times(x, y);
  const std::vector<Tensor> g = (e + p * 2).sum().gradient({x, y});
  EXPECT_NEAR(g[0].tolist()[0], 1 + 6, 1e-5);
  EXPECT_NEAR(g[0].tolist()[1], std::exp(1.0f) + 10, 1e-5);
  EXPECT_EQ(g[1].tolist(), (Floats{0, 2}));
  // Only one of the results is used.
  EXPECT_EQ(exp_times(x, y).second.sum().gradient({x})[0].tolist(), (Floats{3, 5}));
}

TEST_P(FunctionsOn, GradientsOfGradients) {
  const auto square = function([](const Tensor& x) { return x * x; },
                               {.name = "square", .gradient = [](auto g, auto in, auto) { return std::vector<Tensor>{g[0] * in[0] * 2}; }});
  const Tensor x({3.0});
  const Tensor first = square(x).sum().gradient({x})[0];
  EXPECT_EQ(first.item(), 6);
  EXPECT_EQ(first.gradient({x})[0].item(), 2);
}

TEST_P(FunctionsOn, FunctionsOfFunctions) {
  const auto inner = function([](const Tensor& x) { return x * x; });
  const auto outer = function([&](const Tensor& x, const Tensor& y) { return inner(x + y) * y; });
  const Tensor x({1.0, 2.0}), y({3.0, 4.0});
  EXPECT_EQ(outer(x, y).tolist(), (Floats{48, 144}));
  EXPECT_EQ(outer(x, y).sum().gradient({x})[0].tolist(), (Floats{24, 48}));
  const auto captures = function([&](const Tensor& a) { return function([&](const Tensor& b) { return a * b; })(a + 1); });
  EXPECT_EQ(captures(x).tolist(), (Floats{2, 6}));
}

TEST_P(FunctionsOn, InAJittedFunction) {
  const auto doubled =
      function([](const Tensor& x) { return x * 2; }, {.gradient = [](auto g, auto, auto) { return std::vector<Tensor>{g[0]}; }});
  const auto step = jit([&](const Tensor& x) { return (doubled(x) * x).sum().gradient({x})[0]; });
  for (int i = 1; i < 5; ++i) EXPECT_EQ(step(Tensor({1.0 * i})).item(), 3 * i);
  EXPECT_TRUE(step.captured());
}

TEST_P(FunctionsOn, Mistakes) {
  Tensor state({1.0});
  state.realize();
  const Tensor x({1.0, 2.0});
  EXPECT_THROW(function([](const Tensor& a) { return a.sum().realize() + 1; })(x), ValueError);
  const auto assigns = function([&](const Tensor& a) { return Tensor(state).assign(a.sum().reshape({1})) + 1; });
  EXPECT_THROW(assigns(x), ValueError);
  EXPECT_EQ(state.item(), 1);
  const auto wrong =
      function([](const Tensor& a) { return a * 2; }, {.gradient = [](auto g, auto, auto) { return std::vector<Tensor>{g[0].sum()}; }});
  EXPECT_THROW(wrong(x).sum().gradient({x}), ShapeError);
  EXPECT_THROW((void)(x > 1).cast(DType::int32).sum().gradient({x}), DTypeError);
}

TEST_P(FunctionsOn, WhatFailsLeavesTensorsAsTheyWere) {
  Tensor state = Tensor({1.0, 2.0}).realize(), lazy = state * 3;
  const Tensor view = state[{1}], x({1.0, 2.0});
  const auto assigns_unseen = function([&](const Tensor& a) {
    state.assign(a * 2);
    lazy.assign(lazy + a);
    return a + 1;
  });
  EXPECT_THROW(assigns_unseen(x), ValueError);
  const auto throws = function([&](const Tensor& a) -> Tensor {
    state.assign(a * 2);
    throw std::runtime_error("mine");
  });
  EXPECT_THROW(throws(x), std::runtime_error);
  EXPECT_EQ(state.tolist(), (Floats{1, 2}));
  EXPECT_EQ(view.item(), 2);
  EXPECT_EQ(lazy.tolist(), (Floats{3, 6}));
  // An argument that is a copy, and one that was assigned to outside.
  state.assign(x);
  EXPECT_EQ(function([](const Tensor& a) { return a + 1; })(state).tolist(), (Floats{2, 3}));
}

/// c = a + b over n elements.
UOp add_kernel(std::span<const UOp> p) {
  const UOp i = range(shape_of(p[0])[0].value(), 0);
  return sink(UOps{end(store(index(p[0], i), load(index(p[1], i)) + load(index(p[2], i))), UOps{i})});
}

TEST_P(FunctionsOn, CustomKernel) {
  const Tensor a({1.0, 2.0, 3.0}), b({10.0, 20.0, 30.0});
  const std::vector<Tensor> args{Tensor::empty({3}), a, b};
  const std::vector<Tensor> out = custom_kernel(args, add_kernel);
  EXPECT_EQ(out[0].tolist(), (Floats{11, 22, 33}));
  EXPECT_EQ((out[0] * 2).tolist(), (Floats{22, 44, 66}));
  EXPECT_EQ(args[0].tolist(), (Floats{11, 22, 33}));
  EXPECT_THROW(custom_kernel(args, add_kernel)[0].sum().gradient({a}), ValueError);
  const std::vector<Tensor> differentiable =
      custom_kernel(args, add_kernel, [](auto g, auto, auto) { return std::vector<Tensor>{Tensor(), g[0], g[0] * 2}; });
  const std::vector<Tensor> g = (differentiable[0] * 3).sum().gradient({a, b});
  EXPECT_EQ(g[0].tolist(), (Floats{3, 3, 3}));
  EXPECT_EQ(g[1].tolist(), (Floats{6, 6, 6}));
}

TEST_P(FunctionsOn, CustomKernelInAJittedFunction) {
  const auto f = jit([](const Tensor& a, const Tensor& b) {
    const std::vector<Tensor> args{Tensor::empty({2}), a + 1, b};
    return custom_kernel(args, add_kernel)[0] * 2;
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(Tensor({1.0 * i, 2.0}), Tensor({5.0, 6.0})).tolist(), (Floats{float(2 * i + 12), 18}));
  EXPECT_TRUE(f.captured());
}

TEST_P(FunctionsOn, OpsOfTheGraph) {
  const Tensor a({1.0, 2.0}), b({{3.0}, {4.0}});
  EXPECT_EQ(a.alu(Op::ADD, {b}).tolist(), (Floats{4, 5, 5, 6}));
  EXPECT_EQ((a > 1).alu(Op::WHERE, {a, a * 2}).tolist(), (Floats{2, 2}));
  EXPECT_EQ(a.alu(Op::NEG).tolist(), (Floats{-1, -2}));
  EXPECT_THROW(a.alu(Op::ADD), ValueError);
  EXPECT_THROW(a.alu(Op::RESHAPE, {b}), ValueError);
  EXPECT_THROW(a.alu(Op::ADD, {b.cast(DType::int32)}), DTypeError);
  EXPECT_EQ(a.ufix(2).dtype(), DType::float32);
  EXPECT_EQ(Tensor({1, 2}).ufix(2.5).dtype(), DType::float32);
  EXPECT_EQ(Tensor({1, 2}).ufix(2).dtype(), DType::int32);
  const std::vector<Tensor> more{a, a * 2};
  EXPECT_EQ(a.usum(more).tolist(), (Floats{4, 8}));
  EXPECT_EQ(a.uprod(more).tolist(), (Floats{2, 16}));
  const Variable n("n", 1, 2);
  const Tensor part = (a + 1).shrink_to({n.bind(2)});
  const auto [linear, variables] = Tensor::linear_with_vars(std::vector<Tensor>{part});
  EXPECT_TRUE(linear.is(Op::LINEAR));
  EXPECT_EQ(linear.src_count(), 1u);
  EXPECT_EQ(variables, (std::vector<std::pair<std::string, int64_t>>{{"n", 2}}));
}

}  // namespace
}  // namespace tinygrad
