// Schedulers against PyTorch's learning rates, jitted and resumed.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include <tinygrad/tinygrad.h>

namespace tinygrad {
namespace {

using namespace nn::optim;
using Doubles = std::vector<double>;

struct Fixture {
  Tensor p = Tensor({1.0});
  SGD optimizer{std::vector<Tensor>{p}, {.lr = 0.5}};
};

template <class Scheduler, class... Args>
void expect_rates(const Doubles& want, const Args&... args) {
  Fixture plain, jitted;
  Scheduler scheduler(plain.optimizer, args...), inside(jitted.optimizer, args...);
  const auto step = jit([&](const Tensor& x) {
    inside.step();
    return x + jitted.optimizer.lr;
  });
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(plain.optimizer.lr.item(), want[i], 1e-6 * 0.5) << "step " << i;
    EXPECT_NEAR(jitted.optimizer.lr.item(), want[i], 1e-6 * 0.5) << "jitted step " << i;
    scheduler.step();
    step(Tensor({1.0})).realize();
  }
  EXPECT_TRUE(step.captured());
}

TEST(LrScheduler, RatesArePyTorchs) {
  expect_rates<MultiStepLR>({0.5, 0.5, 0.25, 0.25, 0.25, 0.0625, 0.0625, 0.0625}, std::vector<int64_t>{5, 2, 5}, 0.5);
  expect_rates<CosineAnnealingLR>(
      {0.5, 0.4618033989, 0.3618033989, 0.2381966011, 0.1381966011, 0.1, 0.1381966011, 0.2381966011, 0.3618033989, 0.4618033989},
      CosineAnnealingOptions{.steps = 5, .end_lr = 0.1});
  expect_rates<OneCycleLR>({0.04, 0.52, 1, 0.950484632, 0.8117456539, 0.6112620219, 0.3887419781, 0.1882583461, 0.04951936799, 4e-06},
                           OneCycleOptions{.max_lr = 1.0, .total_steps = 10});
  expect_rates<OneCycleLR>({0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25, 0.175, 0.1, 0.025}, OneCycleOptions{.max_lr = 1.0,
                                                                                                     .total_steps = 10,
                                                                                                     .pct_start = 0.4,
                                                                                                     .anneal = Anneal::linear,
                                                                                                     .div_factor = 4,
                                                                                                     .final_div_factor = 10,
                                                                                                     .three_phase = true});
}

TEST(LrScheduler, WarmupThenCosine) {
  Doubles want;
  for (int i = 0; i < 9; ++i)
    want.push_back(i < 3 ? 0.5 * (i + 1) / 3 : 0.1 + 0.2 * (1 + std::cos(M_PI * std::min(1.0, (i + 1 - 3) / 4.0))));
  expect_rates<CosineAnnealingLRWithWarmup>(want, CosineWarmupOptions{.warmup_steps = 3, .decay_steps = 4, .end_lr = 0.1});
}

TEST(LrScheduler, Lambda) {
  Fixture f;
  LambdaLR scheduler(f.optimizer, [](int64_t step) { return std::pow(0.9, static_cast<double>(step)); });
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(f.optimizer.lr.item(), 0.5 * std::pow(0.9, i), 1e-7);
    scheduler.step();
  }
  const auto step = jit([&](const Tensor& x) {
    scheduler.step();
    return x + 1;
  });
  EXPECT_THROW(for (int i = 0; i < 3; ++i) step(Tensor({1.0})).realize(), JitError);
}

void expect_plateau(const ReduceLROnPlateauOptions& options, const Doubles& metrics, const Doubles& want) {
  Fixture f;
  ReduceLROnPlateau scheduler(f.optimizer, options);
  ASSERT_EQ(metrics.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    scheduler.step(metrics[i]);
    EXPECT_NEAR(f.optimizer.lr.item(), want[i], 1e-6 * want[i]) << "step " << i;
  }
}

TEST(LrScheduler, PlateausArePyTorchs) {
  const Doubles metrics{3, 2, 2.5, 2.4, 1.95, 2.2, 2.1, 2, 2, 2, 1.5, 1.4999, 1.6, 1.7, std::nan(""), 1.8};
  expect_plateau({.factor = 0.5, .patience = 1}, metrics,
                 {0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625, 0.0625, 0.0625, 0.03125, 0.03125, 0.015625, 0.015625});
  expect_plateau({.factor = 0.1, .patience = 0, .threshold = 0.2, .threshold_mode = PlateauThreshold::abs, .cooldown = 2, .min_lr = 0.01},
                 metrics, {0.5, 0.5, 0.05, 0.05, 0.05, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01});
  expect_plateau({.mode = PlateauMode::max, .factor = 0.5, .patience = 2, .threshold = 0.01}, metrics,
                 {0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.0625, 0.03125, 0.03125, 0.03125, 0.015625});
}

TEST(LrScheduler, GoesOnAfterLoading) {
  Fixture f, g;
  MultiStepLR a(f.optimizer, {2, 4}), b(g.optimizer, {2, 4});
  for (int i = 0; i < 3; ++i) a.step();
  g.optimizer.lr.assign(Tensor({7.0}));
  nn::state::load_state_dict(g.optimizer, nn::state::get_state_dict(f.optimizer));
  nn::state::load_state_dict(b, nn::state::get_state_dict(a));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(f.optimizer.lr.item<float>(), g.optimizer.lr.item<float>());
    a.step(), b.step();
  }
}

TEST(LrScheduler, MistakesAreNamed) {
  Fixture f;
  EXPECT_THROW(MultiStepLR(f.optimizer, {-1}), ValueError);
  EXPECT_THROW(MultiStepLR(f.optimizer, {1}, -0.5), ValueError);
  EXPECT_THROW(CosineAnnealingLR(f.optimizer, {.steps = 0}), ValueError);
  EXPECT_THROW(CosineAnnealingLRWithWarmup(f.optimizer, {.warmup_steps = 0}), ValueError);
  EXPECT_THROW(OneCycleLR(f.optimizer, {.pct_start = 1.5}), ValueError);
  EXPECT_THROW(LambdaLR(f.optimizer, nullptr), ValueError);
  EXPECT_THROW(ReduceLROnPlateau(f.optimizer, {.factor = 1}), ValueError);
  ReduceLROnPlateau plateau(f.optimizer);
  EXPECT_THROW(plateau.step(Tensor({1.0, 2.0})), ShapeError);
  OptimizerGroup group({std::make_shared<SGD>(std::vector<Tensor>{f.p})});
  EXPECT_THROW(MultiStepLR(group, {1}), ValueError);
  EXPECT_EQ(f.optimizer.lr.item(), 0.5);
}

}  // namespace
}  // namespace tinygrad
