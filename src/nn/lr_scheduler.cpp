#include <tinygrad/lr_scheduler.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <tinygrad/errors.h>

#include "nn/require.h"

namespace tinygrad::nn::optim {

namespace {

void require_steps(std::string_view scheduler, std::string_view what, int64_t got) {
  require(got >= 1 && got <= std::numeric_limits<int32_t>::max(), scheduler, what, static_cast<double>(got), "at least 1, in 32 bits");
}

const Tensor& rate_of(const Optimizer& optimizer) {
  if (!optimizer.lr.defined()) throw ValueError("scheduler: an OptimizerGroup has no rate; give each of its optimizers a scheduler");
  return optimizer.lr;
}

Tensor number(double value, DType dtype, const Tensor& beside) {
  return Tensor({value}, {.dtype = dtype, .device = beside.device()}).is_param_(false);
}

/// From `begin` to `end` where `part` goes from 0 to 1.
Tensor cosine(const Tensor& begin, const Tensor& end, const Tensor& part) {
  return end + (begin - end) * (((part * std::numbers::pi).cos() + 1) * 0.5);
}

}  // namespace

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  base_lr = rate_of(optimizer).clone().is_param_(false);
  epoch = number(0, DType::int32, base_lr);
  base_lr.realize();
}

void LRScheduler::start() { optimizer_.lr.assign(get_lr()).realize(); }

void LRScheduler::step() { Tensor::realize(schedule_step()); }

std::vector<Tensor> LRScheduler::schedule_step() {
  epoch.assign(epoch + 1);
  return {epoch, optimizer_.lr.assign(get_lr().cast(optimizer_.lr.dtype()))};
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  require(gamma >= 0, "MultiStepLR", "gamma", gamma, "at least 0");
  for (int64_t m : milestones_) require(m >= 0, "MultiStepLR", "a milestone", static_cast<double>(m), "at least 0");
  std::sort(milestones_.begin(), milestones_.end());
  start();
}

Tensor MultiStepLR::get_lr() const {
  Tensor factor = base_lr.ones_like();
  double power = 1;
  for (int64_t m : milestones_) factor = (epoch >= m).where(power *= gamma_, factor);
  return base_lr * factor;
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingOptions& options)
    : LRScheduler(optimizer), options_(options) {
  require_steps("CosineAnnealingLR", "the number of steps", options.steps);
  start();
}

Tensor CosineAnnealingLR::get_lr() const {
  return cosine(base_lr, base_lr.full_like(options_.end_lr), steps() / static_cast<double>(options_.steps));
}

CosineAnnealingLRWithWarmup::CosineAnnealingLRWithWarmup(Optimizer& optimizer, const CosineWarmupOptions& options)
    : LRScheduler(optimizer), options_(options) {
  require_steps("CosineAnnealingLRWithWarmup", "the number of warm-up steps", options.warmup_steps);
  require_steps("CosineAnnealingLRWithWarmup", "the number of decay steps", options.decay_steps);
  start();
}

Tensor CosineAnnealingLRWithWarmup::get_lr() const {
  const double warmup = static_cast<double>(options_.warmup_steps), decay = static_cast<double>(options_.decay_steps);
  const Tensor next = steps() + 1, part = ((next - warmup) / decay).minimum(1);
  return (epoch < options_.warmup_steps).where(base_lr * (next / warmup), cosine(base_lr, base_lr.full_like(options_.end_lr), part));
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleOptions& options) : LRScheduler(optimizer), options_(options) {
  require_steps("OneCycleLR", "the number of steps", options.total_steps);
  require(options.max_lr >= 0, "OneCycleLR", "max_lr", options.max_lr, "at least 0");
  require(options.pct_start >= 0 && options.pct_start <= 1, "OneCycleLR", "pct_start", options.pct_start, "0 to 1");
  require(options.div_factor > 0, "OneCycleLR", "div_factor", options.div_factor, "more than 0");
  require(options.final_div_factor > 0, "OneCycleLR", "final_div_factor", options.final_div_factor, "more than 0");
  start();
}

Tensor OneCycleLR::get_lr() const {
  const OneCycleOptions& o = options_;
  const double total = static_cast<double>(o.total_steps), first = o.max_lr / o.div_factor, last = first / o.final_div_factor;
  struct Phase {
    double end_step, begin_lr, end_lr;
  };
  std::vector<Phase> phases{{o.pct_start * total - 1, first, o.max_lr}};
  if (o.three_phase) phases.push_back({2 * o.pct_start * total - 2, o.max_lr, first});
  phases.push_back({total - 1, o.three_phase ? first : o.max_lr, last});
  Tensor lr;
  for (size_t i = phases.size(); i-- > 0;) {  // the last phase is also what comes after it
    const double begin = i ? phases[i - 1].end_step : 0, length = phases[i].end_step - begin;
    const Tensor at = length > 0 ? ((steps() - begin) / length).minimum(1) : base_lr.ones_like();
    const Tensor from = base_lr.full_like(phases[i].begin_lr), to = base_lr.full_like(phases[i].end_lr);
    const Tensor here = o.anneal == Anneal::cosine ? cosine(from, to, at) : from + (to - from) * at;
    lr = lr.defined() ? (steps() <= phases[i].end_step).where(here, lr) : here;
  }
  return lr;
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor) : LRScheduler(optimizer), factor_(std::move(factor)) {
  if (!factor_) throw ValueError("LambdaLR: got no function");
  start();
}

Tensor LambdaLR::get_lr() const { return base_lr * factor_(epoch.item<int64_t>()); }

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options)
    : optimizer_(optimizer), options_(options) {
  constexpr const char* name = "ReduceLROnPlateau";
  require(options.factor >= 0 && options.factor < 1, name, "the factor", options.factor, "at least 0 and below 1");
  require(options.patience >= 0, name, "the patience", static_cast<double>(options.patience), "at least 0");
  require(options.cooldown >= 0, name, "the cooldown", static_cast<double>(options.cooldown), "at least 0");
  require(options.threshold >= 0, name, "the threshold", options.threshold, "at least 0");
  require(options.min_lr >= 0, name, "min_lr", options.min_lr, "at least 0");
  const Tensor& lr = rate_of(optimizer);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  best = number(options.mode == PlateauMode::min ? infinity : -infinity, lr.dtype(), lr);
  bad_steps = number(0, DType::int32, lr);
  cooling_down = number(0, DType::int32, lr);
}

void ReduceLROnPlateau::step(const Tensor& metric) { Tensor::realize(schedule_step(metric)); }
void ReduceLROnPlateau::step(double metric) { step(number(metric, best.dtype(), best)); }

std::vector<Tensor> ReduceLROnPlateau::schedule_step(const Tensor& metric) {
  if (metric.numel() != 1) throw ShapeError(fmt::format("ReduceLROnPlateau: got the metric {}, expects one element", metric.to_string()));
  const ReduceLROnPlateauOptions& o = options_;
  Tensor& lr = optimizer_.lr;
  const Tensor now = metric.detach().to(best.device()).cast(best.dtype()).reshape({1});
  const bool less = o.mode == PlateauMode::min;
  const double sign = less ? -1 : 1;
  const Tensor limit = o.threshold_mode == PlateauThreshold::rel ? best * (1 + sign * o.threshold) : best + sign * o.threshold;
  const Tensor better = less ? now < limit : now > limit, cooling = cooling_down > 0;
  const Tensor bad = cooling.where(0, better.where(0, bad_steps + 1)), reduce = bad > o.patience;
  const Tensor lower = (lr * o.factor).maximum(o.min_lr);
  const Tensor next_best = better.where(now, best), next_bad = reduce.where(0, bad);
  const Tensor next_cooling = reduce.where(o.cooldown, (cooling_down - 1).maximum(0));
  lr.assign((reduce & (lr - lower > o.eps)).where(lower, lr));
  best.assign(next_best);
  bad_steps.assign(next_bad.cast(DType::int32));
  cooling_down.assign(next_cooling.cast(DType::int32));
  return {lr, best, bad_steps, cooling_down};
}

}  // namespace tinygrad::nn::optim
