#include <tinygrad/compile_report.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include <tinygrad/context.h>

#include "base/options.h"
#include "base/profile.h"
#include "engine/run.h"
#include "rewrite/rules.h"
#include "schedule/schedule.h"
#include "tensor/cell.h"
#include "tensor/realize.h"

namespace tinygrad {

namespace {

/// What was recorded since `start_ns`, added up by step.
std::vector<StepTime> steps_since(int64_t start_ns) {
  std::vector<StepTime> steps;
  for (const ProfileEvent& e : profile_events()) {
    if (e.start_ns < start_ns || (e.category != Symbol("schedule") && e.category != Symbol("lower"))) continue;
    const auto same = [&](const StepTime& s) { return s.stage == e.category.str() && s.step == e.name.str(); };
    auto it = std::ranges::find_if(steps, same);
    if (it == steps.end()) it = steps.insert(it, {.stage = std::string(e.category.str()), .step = std::string(e.name.str())});
    ++it->calls;
    it->seconds += double(e.duration_ns) * 1e-9;
  }
  return steps;
}

std::vector<RuleTime> rules_tried() {
  std::vector<RuleTime> rules;
  for (const rewrite::RuleStatistics& r : rewrite::rule_statistics())
    if (r.tries)
      rules.push_back({.name = r.name, .location = r.location, .hits = r.hits, .tries = r.tries, .seconds = double(r.nanoseconds) * 1e-9});
  std::ranges::stable_sort(rules, std::greater(), &RuleTime::seconds);
  return rules;
}

/// Measures each rule while it lives.
class RuleTiming {
 public:
  RuleTiming() {
    rewrite::reset_rule_statistics();
    rewrite::set_rule_timing(true);
  }
  ~RuleTiming() { rewrite::set_rule_timing(false); }
  RuleTiming(const RuleTiming&) = delete;
  RuleTiming& operator=(const RuleTiming&) = delete;
};

}  // namespace

CompileReport compile_report(std::span<const Tensor> tensors, const CompileReportOptions& parts) {
  std::optional<Context> profiled;
  if (parts.steps) profiled.emplace(ContextArgs{.profile = true});
  std::optional<RuleTiming> timing;
  if (parts.rules) timing.emplace();
  const Options& options = current_options();
  const int64_t start_ns = profile_now_ns();

  const auto start = std::chrono::steady_clock::now();
  const UOp effects = tensor::effects_of(tensors);
  schedule::ScheduleOptions how = schedule::ScheduleOptions::from(options);
  how.cache = false;
  const schedule::Schedule schedule = schedule::make_schedule(effects, engine::target_of, how);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  engine::RenderReport rendered = engine::render_schedule(schedule, options, parts.sources);

  CompileReport report{.kernels = rendered.kernels,
                       .unique_kernels = rendered.programs.size(),
                       .bytes = rendered.bytes,
                       .schedule_s = taken.count(),
                       .lower_s = rendered.lower_s,
                       .render_s = rendered.render_s};
  if (parts.steps) report.steps = steps_since(start_ns);
  if (parts.rules) report.rules = rules_tried();
  if (parts.sources)
    for (size_t i = 0; i < rendered.programs.size(); ++i) {
      RenderedProgram& p = rendered.programs[i];
      report.sources.push_back({p.info.name, std::move(rendered.opts[i]), std::move(p.source), std::move(p.info)});
    }
  return report;
}

UOp Tensor::schedule_linear(std::span<const Tensor> tensors) { return linear_with_vars(tensors).first; }

std::pair<UOp, std::vector<std::pair<std::string, int64_t>>> Tensor::linear_with_vars(std::span<const Tensor> tensors) {
  const auto how = schedule::ScheduleOptions::from(current_options());
  const schedule::Schedule schedule = schedule::make_schedule(tensor::effects_of(tensors), engine::target_of, how);
  std::vector<std::pair<std::string, int64_t>> variables;
  for (const auto& [variable, value] : schedule.variables) variables.emplace_back(variable.arg_as<VarArg>().name.str(), value);
  return {schedule.plan->linear, std::move(variables)};
}

}  // namespace tinygrad
