// Optimizers against PyTorch's numbers and their formulas, their state, and their mistakes.
#include <gtest/gtest.h>

#include <cmath>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using namespace nn::optim;
using Doubles = std::vector<double>;

void expect_near(const Doubles& got, const Doubles& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << "element " << i;
}

/// Parameters a (2, 3) and b (2), and the loss sum(sin(a) * c) + sum(b^3), whose gradients are neither constant nor equal.
struct Problem {
  DType dtype = DType::float32;
  Tensor a = Tensor({{0.5, -1.0, 2.0}, {1.5, 0.25, -0.75}}, {.dtype = dtype}), b = Tensor({1.0, -0.5}, {.dtype = dtype});
  Tensor c = Tensor({{1.0, 2.0, -1.0}, {0.5, -2.0, 1.5}}, {.dtype = dtype}).is_param_(false);

  std::vector<Tensor> params() const { return {a, b}; }
  Tensor loss() const { return (a.sin() * c).sum() + (b * b * b).sum(); }
  Doubles values() const { return Tensor::cat({a.flatten(), b}).tolist<double>(); }
  void steps(Optimizer& optimizer, int count) const {
    const Context training{{.training = true}};
    for (int i = 0; i < count; ++i) {
      optimizer.zero_grad();
      loss().backward();
      optimizer.step();
    }
  }
};

template <class O, class Options>
Doubles after_steps(const Options& options, int count = 4, DType dtype = DType::float32) {
  const Problem problem{.dtype = dtype};
  O optimizer(problem.params(), options);
  problem.steps(optimizer, count);
  return problem.values();
}

template <class O, class Options>
void expect_after_steps(const Options& options, const Doubles& want) {
  expect_near(after_steps<O>(options), want, 2e-6);
  const Context doubles{{.default_float = std::string("float64")}};
  expect_near(after_steps<O>(options, 4, DType::float64), want, 1e-9);
}

TEST(Optim, SgdGivesPyTorchsNumbers) {
  expect_after_steps<SGD>(SGDOptions{.lr = 0.1}, {0.1282517767, -1.3295046708, 1.8552878631, 1.4847588862, 0.9279122528, -1.1193835557,
                                                  0.3974298110, -1.0076416469});
  expect_after_steps<SGD>(
      SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05},
      {-0.3514086447, -1.6889517627, 1.6002844342, 1.3931422380, 1.7120274697, -1.5381147246, -0.5003750518, -1.6239877765});
  expect_after_steps<SGD>(
      SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.05, .nesterov = true},
      {-0.6530994454, -1.7020801689, 1.5324971845, 1.3482171697, 1.8382981529, -1.6267643534, -0.4646957792, -3.2346816295});
}

TEST(Optim, AdamAndAdamWGivePyTorchsNumbers) {
  const Doubles adam{0.0991719321, -1.3874790507, 1.6222830387, 1.1149186563, 0.6481645327, -1.1436951490, 0.6134392534, -0.9006838795},
      adamw{0.0595468473, -1.2630517789, 1.4345857802, 0.9671221708, 0.6027912261, -1.0436746568, 0.5178082849, -0.8233407302};
  // 1 - b2^t is computed from a float32.
  expect_near(after_steps<Adam>(AdamOptions{.lr = 0.1, .b1 = 0.8, .b2 = 0.95, .eps = 1e-3}), adam, 5e-6);
  expect_near(after_steps<AdamW>(AdamWOptions{.lr = 0.1, .weight_decay = 0.3}), adamw, 5e-6);
  const Context doubles{{.default_float = std::string("float64")}};
  expect_near(after_steps<AdamW>(AdamWOptions{.lr = 0.1, .weight_decay = 0.3}, 4, DType::float64), adamw, 1e-5);
}

TEST(Optim, MuonGivesPyTorchsNumbers) {
  // PyTorch takes matrices only; its factor for tall ones is 1 here.
  const Problem problem;
  Muon optimizer(std::vector<Tensor>{problem.a}, {.lr = 0.1});
  problem.steps(optimizer, 4);
  expect_near(problem.a.tolist<double>(), {0.1645610476, -1.1155833116, 1.6974096997, 1.3380680035, 0.4437281306, -0.9269924595},
              2e-2);  // which PyTorch computes in bfloat16
}

TEST(Optim, MuonTakesVectorsAsColumns) {
  const Problem problem;
  Muon optimizer(std::vector<Tensor>{problem.b}, {.lr = 0.1, .momentum = 0.0, .weight_decay = 0.0, .ns_steps = 8, .nesterov = false});
  problem.steps(optimizer, 1);  // the gradient is (3, 0.75), an orthogonal column that over its length
  const Doubles got = problem.b.tolist<double>();
  const double x = (1 - got[0]) / 0.1, y = (-0.5 - got[1]) / 0.1;
  EXPECT_NEAR(x / y, 4, 1e-3);
  EXPECT_NEAR(std::hypot(x, y), 1, 0.35);  // the iteration does not converge, it stays near
}

/// The momentum updates of SGD, LARS and Muon without the iteration, one element at a time.
Doubles lars_by_its_formula(const LARSOptions& o, int count) {
  const Doubles c{1, 2, -1, 0.5, -2, 1.5};
  Doubles p{0.5, -1, 2, 1.5, 0.25, -0.75, 1, -0.5}, momentum(8, 0);
  for (int step = 0; step < count; ++step) {
    Doubles g(8);
    for (size_t i = 0; i < 8; ++i) g[i] = i < 6 ? std::cos(p[i]) * c[i] : 3 * p[i] * p[i];
    for (const auto& [begin, end] : {std::pair<size_t, size_t>(0, 6), std::pair<size_t, size_t>(6, 8)}) {
      double pp = 0, gg = 0;
      for (size_t i = begin; i < end; ++i) pp += p[i] * p[i], gg += g[i] * g[i];
      const double ratio = o.tcoef != 0 ? o.tcoef * std::sqrt(pp) / (std::sqrt(gg) + o.weight_decay * std::sqrt(pp)) : 1;
      for (size_t i = begin; i < end; ++i) {
        double u = g[i] + (o.pre_wd ? o.weight_decay * p[i] : 0);
        if (o.classic) u *= ratio * o.lr;
        if (o.momentum != 0) {
          momentum[i] = o.momentum * momentum[i] + u;
          u = o.nesterov ? u + o.momentum * momentum[i] : momentum[i];
        }
        if (!o.pre_wd) p[i] *= 1 - o.lr * o.weight_decay;
        p[i] -= o.classic ? u : u * ratio * o.lr;
      }
    }
  }
  return p;
}

TEST(Optim, LarsByItsFormula) {
  for (const bool classic : {true, false})
    for (const bool nesterov : {true, false})
      for (const bool pre_wd : {true, false}) {
        const LARSOptions o{.lr = 0.1, .weight_decay = 0.02, .nesterov = nesterov, .classic = classic, .pre_wd = pre_wd, .tcoef = 0.3};
        expect_near(after_steps<LARS>(o), lars_by_its_formula(o, 4), 2e-6);
      }
  const LARSOptions classic{.lr = 0.1, .momentum = 0.5, .weight_decay = 0.1, .tcoef = 0};
  expect_near(after_steps<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.5, .weight_decay = 0.1, .classic = true}),
              lars_by_its_formula(classic, 4), 2e-6);
}

TEST(Optim, LarsOfZerosMovesAsSgd) {
  const Context training{{.training = true}};
  const Tensor p = Tensor::zeros({3});
  LARS optimizer(std::vector<Tensor>{p}, {.lr = 0.5, .momentum = 0});
  p.sum().backward();
  optimizer.step();
  EXPECT_EQ(p.tolist(), (std::vector<float>{-0.5, -0.5, -0.5}));
}

TEST(Optim, LambByItsFormula) {
  const LAMBOptions o{.lr = 0.1, .b1 = 0.8, .b2 = 0.9, .eps = 1e-4, .weight_decay = 0.2};
  const Doubles c{1, 2, -1, 0.5, -2, 1.5};
  Doubles p{0.5, -1, 2, 1.5, 0.25, -0.75, 1, -0.5}, m(8, 0), v(8, 0);
  for (int step = 1; step <= 4; ++step) {
    Doubles up(8);
    for (size_t i = 0; i < 8; ++i) {
      const double g = i < 6 ? std::cos(p[i]) * c[i] : 3 * p[i] * p[i];
      m[i] = o.b1 * m[i] + (1 - o.b1) * g;
      v[i] = o.b2 * v[i] + (1 - o.b2) * g * g;
      up[i] = m[i] / (1 - std::pow(o.b1, step)) / (std::sqrt(v[i] / (1 - std::pow(o.b2, step))) + o.eps) + o.weight_decay * p[i];
    }
    for (const auto& [begin, end] : {std::pair<size_t, size_t>(0, 6), std::pair<size_t, size_t>(6, 8)}) {
      double pp = 0, uu = 0;
      for (size_t i = begin; i < end; ++i) pp += p[i] * p[i], uu += up[i] * up[i];
      for (size_t i = begin; i < end; ++i) p[i] -= o.lr * std::sqrt(pp / uu) * up[i];
    }
  }
  expect_near(after_steps<LAMB>(o), p, 1e-5);
}

TEST(Optim, FusedGivesTheSame) {
  const auto check = [](const Doubles& fused, const Doubles& apart) { expect_near(fused, apart, 1e-6); };
  check(after_steps<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .fused = true}), after_steps<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9}));
  check(after_steps<AdamW>(AdamWOptions{.lr = 0.1, .fused = true}), after_steps<AdamW>(AdamWOptions{.lr = 0.1}));
  const Context fused{{.fuse_optim = true}};
  const Problem problem;
  const Adam optimizer(problem.params());
  ASSERT_EQ(optimizer.m.size(), 1U);
  EXPECT_EQ(optimizer.m[0].shape(), (Sizes{8}));
}

TEST(Optim, HalvesHaveAFloat32State) {
  const Problem problem{.dtype = DType::float16};
  AdamW optimizer(problem.params(), {.lr = 0.1, .weight_decay = 0.3});
  EXPECT_EQ(optimizer.m[0].dtype(), DType::float32);
  problem.steps(optimizer, 4);
  EXPECT_EQ(problem.a.dtype(), DType::float16);
  expect_near(problem.values(), after_steps<AdamW>(AdamWOptions{.lr = 0.1, .weight_decay = 0.3}), 4e-3);
}

TEST(Optim, StateOnAnotherDevice) {
  const Problem problem;
  AdamW optimizer(problem.params(), {.lr = 0.1, .device = "interp"});
  EXPECT_EQ(optimizer.m[0].device(), "INTERP");
  problem.steps(optimizer, 2);
  EXPECT_EQ(problem.a.device(), "CPU");
  expect_near(problem.values(), after_steps<AdamW>(AdamWOptions{.lr = 0.1}, 2), 1e-6);
}

TEST(Optim, AGroupStepsEachOfItsOptimizers) {
  const Problem problem, apart;
  const auto sgd = std::make_shared<SGD>(std::vector<Tensor>{problem.a}, SGDOptions{.lr = 0.1});
  const auto adam = std::make_shared<Adam>(std::vector<Tensor>{problem.b}, AdamOptions{.lr = 0.1});
  OptimizerGroup group({sgd, adam});
  problem.steps(group, 3);
  SGD first(std::vector<Tensor>{apart.a}, {.lr = 0.1});
  Adam second(std::vector<Tensor>{apart.b}, {.lr = 0.1});
  apart.steps(first, 3);
  apart.steps(second, 3);
  EXPECT_EQ(problem.values(), apart.values());
  EXPECT_EQ(nn::state::get_state_dict(group).count("optimizers.1.m.0"), 1U);
  EXPECT_EQ(group.params().size(), 2U);
  group.zero_grad();
  EXPECT_FALSE(problem.b.grad().defined());
  EXPECT_THROW(OptimizerGroup({sgd, sgd}), ValueError);
  EXPECT_THROW(OptimizerGroup(std::vector<std::shared_ptr<Optimizer>>{}), ValueError);
}

TEST(Optim, ParametersAreTakenOnce) {
  const Problem problem;
  const SGD optimizer(std::vector<Tensor>{problem.a, problem.c, problem.a, Tensor({1, 2})});
  EXPECT_EQ(optimizer.params().size(), 1U);
  EXPECT_EQ(optimizer.buffers().size(), 2U);
}

TEST(Optim, ScheduleStepIsLazy) {
  const Context training{{.training = true}};
  const Problem problem;
  Adam optimizer(problem.params(), {.lr = 0.1});
  problem.loss().backward();
  const std::vector<Tensor> changed = optimizer.schedule_step();
  EXPECT_EQ(changed.size(), 8U);  // two powers, and value, mean and mean square of two parameters
  Tensor::realize(changed);
  expect_near(problem.values(), after_steps<Adam>(AdamOptions{.lr = 0.1}, 1), 0);
}

TEST(Optim, AJittedStepFollowsTheLearningRate) {
  const Problem problem;
  SGD optimizer(problem.params(), {.lr = 0.0});
  const auto step = jit([&] {
    const Context training{{.training = true}};
    optimizer.zero_grad();
    const Tensor loss = problem.loss();
    loss.backward();
    optimizer.step();
    return loss;
  });
  const Doubles before = problem.values();
  for (int i = 0; i < 4; ++i) step().realize();
  ASSERT_TRUE(step.captured());
  EXPECT_EQ(problem.values(), before);
  optimizer.lr.assign(Tensor({0.1}));
  step().realize();
  expect_near(problem.values(), after_steps<SGD>(SGDOptions{.lr = 0.1}, 1), 1e-6);
}

TEST(Optim, WrongOptionsAreNamed) {
  const std::vector<Tensor> p{Tensor({1.0})};
  EXPECT_THROW(SGD(p, {.lr = -1}), ValueError);
  EXPECT_THROW(SGD(p, {.lr = std::nan("")}), ValueError);
  EXPECT_THROW(SGD(p, {.momentum = -0.1}), ValueError);
  EXPECT_THROW(SGD(p, {.weight_decay = -0.1}), ValueError);
  EXPECT_THROW(SGD(p, {.nesterov = true}), ValueError);
  EXPECT_THROW(LARS(p, {.tcoef = -1}), ValueError);
  EXPECT_THROW(Adam(p, {.b1 = 1.0}), ValueError);
  EXPECT_THROW(Adam(p, {.b2 = -0.5}), ValueError);
  EXPECT_THROW(AdamW(p, {.eps = -1}), ValueError);
  EXPECT_THROW(LAMB(p, {.weight_decay = -1}), ValueError);
  EXPECT_THROW(Muon(p, {.fused = true}), ValueError);
  EXPECT_THROW(Muon(p, {.ns_steps = -1}), ValueError);
  EXPECT_THROW(Muon(std::vector<Tensor>{Tensor(1.0)}), ShapeError);
  EXPECT_THROW(SGD(std::vector<Tensor>{}), ValueError);
  EXPECT_THROW(SGD(std::vector<Tensor>{Tensor({1, 2})}), ValueError);
  EXPECT_THROW(SGD(p, {.device = "NOWHERE"}), DeviceError);
}

TEST(Optim, AParameterMayBeANumber) {
  const Context training{{.training = true}};
  const auto stepped = [](const Sizes& shape, auto make) {
    Tensor w = Tensor::full(shape, 2.0).contiguous().realize().is_param_();
    const auto optimizer = make(std::vector{w});
    for (int i = 0; i < 2; ++i) {
      optimizer->zero_grad();
      (w * w).sum().backward();
      optimizer->step();
    }
    EXPECT_EQ(w.shape(), shape);
    return w.item<float>();
  };
  const auto check = [&](auto make) { EXPECT_EQ(stepped({}, make), stepped({1}, make)); };
  check([](const auto& p) { return std::make_unique<SGD>(p, SGDOptions{.lr = 0.1, .momentum = 0.9}); });
  check([](const auto& p) { return std::make_unique<LARS>(p, LARSOptions{.lr = 0.1}); });
  check([](const auto& p) { return std::make_unique<Adam>(p, AdamOptions{.lr = 0.1}); });
  check([](const auto& p) { return std::make_unique<LAMB>(p, LAMBOptions{.lr = 0.1}); });
}

TEST(Optim, AGradientOfAnotherShapeIsRefused) {
  const Context training{{.training = true}};
  const Problem problem;
  SGD optimizer(problem.params(), {.lr = 0.1, .momentum = 0.9});
  const Doubles before = problem.values();
  problem.loss().backward();
  EXPECT_THROW(problem.b.set_grad(Tensor({1.0, 2.0, 3.0})), ShapeError);
  EXPECT_EQ(problem.values(), before);
  EXPECT_EQ(optimizer.b[0].tolist<double>(), Doubles(6, 0));
  Adam fused(problem.params(), {.fused = true});
  problem.b.set_grad({});
  EXPECT_THROW(fused.step(), ValueError);
}

}  // namespace
}  // namespace tinygrad
