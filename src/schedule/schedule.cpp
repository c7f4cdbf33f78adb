#include "schedule/schedule.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <tinygrad/helpers.h>

#include "base/log.h"
#include "base/profile.h"
#include "base/recently_used.h"
#include "schedule/effects.h"
#include "schedule/explanation.h"
#include "schedule/finish_kernel.h"
#include "schedule/join_nests.h"
#include "schedule/memory_plan.h"
#include "schedule/merge_kernels.h"
#include "schedule/normalize.h"
#include "schedule/order.h"
#include "schedule/prepare.h"
#include "schedule/rangeify.h"
#include "schedule/repeat_kernels.h"
#include "schedule/share_kernels.h"
#include "schedule/split_reduces.h"
#include "schedule/split_sums.h"
#include "shape/device.h"
#include "spec/verify.h"
#include "uop/build.h"

namespace tinygrad::schedule {

namespace {

/// Leaves out the temporaries that no call has as an argument, and numbers the others without gaps.
void drop_unused(std::vector<UOp>& calls, std::vector<UOp>& temporaries, int32_t first) {
  NodeSet used;
  for (const UOp& c : calls)
    for (const UOp& a : c.src()) used.insert(a);
  std::vector<UOp> kept;
  NodeMap<UOp> renumbered;
  for (const UOp& t : temporaries) {
    if (!used.contains(t)) continue;
    ParamArg arg = t.arg_as<ParamArg>();
    arg.slot = first + int32_t(kept.size());
    kept.push_back(UOp(Op::PARAM, t.dtype(), t.src(), arg));
    renumbered[t] = kept.back();
  }
  for (UOp& c : calls) {
    UOps sources(c.src());
    for (size_t i = 1; i < sources.size(); ++i)
      if (const UOp* t = renumbered.find(sources[i])) sources[i] = *t;
    c = c.with_src(sources);
  }
  temporaries = std::move(kept);
}

/// The calls of steps, in their order.
std::vector<UOp> calls_of(std::vector<Step> steps, const TargetOf& target_of) {
  std::vector<UOp> calls;
  std::vector<MergedKernel> kernels;
  const auto finish = [&] {
    for (const std::vector<MergedKernel>& nests : join_nests(std::exchange(kernels, {}), target_of))
      calls.push_back(finish_kernel(nests, target_of(nests[0].device)));
  };
  for (Step& s : steps) {
    if (!s.loop) {
      kernels.push_back(std::move(s.kernel));
      continue;
    }
    finish();
    const std::vector<UOp> body = calls_of(std::move(s.body), target_of);
    const auto& loop = s.loop.arg_as<VarArg>();
    for (int64_t i = loop.min; i <= loop.max; ++i)
      for (const UOp& c : body) {
        UOps sources(c.src());
        std::ranges::replace(sources, s.loop, bind(s.loop, i));
        calls.push_back(c.with_src(sources));
      }
  }
  finish();
  return calls;
}

std::shared_ptr<const Plan> make_plan(const Normalized& n, const TargetOf& target_of, const ScheduleOptions& options) {
  ProfileSteps clock("schedule");
  const auto done = [&](std::string_view step) {
    clock.done(step);
    check_interrupt();
  };
  UOp prepared = split_sums(prepare(n.sink));
  std::optional<Explainer> explainer;
  if (options.explains) explainer.emplace();
  Explainer* const told = explainer ? &*explainer : nullptr;
  if (options.split_reduces) prepared = split_reduces(prepared, target_of, told ? &told->cuts : nullptr);
  done("prepare");
  const std::vector<UOp> order = toposort(prepared);
  const Effects effects(order);
  done("effects");
  const int32_t first_temporary = int32_t(n.inputs.size());
  Kernels kernels = rangeify(order, effects, target_of, first_temporary, options.explains);
  if (told) told->values = std::move(kernels.notes);
  done("rangeify");
  std::vector<MergedKernel> merged =
      merge_kernels(kernels.kernels, order_kernels(kernels.kernels, effects), target_of, first_temporary, told);
  done("merge kernels");
  std::vector<Step> steps = repeat_kernels(std::move(merged), kernels.temporaries, target_of, first_temporary);
  done("repeat kernels");
  std::vector<UOp> calls = calls_of(std::move(steps), target_of);
  done("finish kernels");
  calls = share_kernels(std::move(calls), target_of);
  done("share kernels");
  auto plan = std::make_shared<Plan>();
  if (told) plan->explanation = std::make_shared<Explanation>(told->explain(calls));
  drop_unused(calls, kernels.temporaries, first_temporary);
  if (options.spec >= 1)
    for (const UOp& c : calls)
      if (c.src(0).is(Op::SINK)) spec::verify_kernel(c.src(0));
  plan->input_count = n.inputs.size();
  plan->linear = UOp(Op::LINEAR, DType::void_, calls, LinearArg{0});
  plan_memory(calls, kernels.temporaries, first_temporary, options.memory_plan, *plan);
  done("memory plan");
  return plan;
}

/// The plans of the last graphs that were asked for.
class PlanCache {
 public:
  static PlanCache& instance() {
    static PlanCache* cache = new PlanCache;
    return *cache;
  }

  std::shared_ptr<const Plan> find(const UOp& key) {
    std::lock_guard lock(mutex_);
    const auto* plan = plans_.find(key);
    if (!plan) return nullptr;
    ++counts_.found;
    return *plan;
  }
  void add(const UOp& key, std::shared_ptr<const Plan> plan) {
    Plans::Dropped dropped;  // graphs may be large: not under the lock
    std::lock_guard lock(mutex_);
    ++counts_.made;
    dropped = plans_.add(key, std::move(plan));
  }
  CacheCounts counts() {
    std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  static constexpr size_t most_plans = 256;
  using Plans = RecentlyUsed<UOp, std::shared_ptr<const Plan>>;
  std::mutex mutex_;
  Plans plans_{most_plans};
  CacheCounts counts_;
};

/// The graph together with all else the plan depends on: the targets of its devices and the options.
UOp cache_key(const Normalized& n, const TargetOf& target_of, const ScheduleOptions& options) {
  ContentHasher h;
  h.add(options.memory_plan);
  h.add(options.split_reduces);
  for (const UOp& b : n.inputs) h.add(target_of(b.arg_as<BufferArg>().device).key());
  return n.sink.with_arg(KernelArg{.name = Symbol(h.finish().to_hex()), .opts = {}});
}

}  // namespace

namespace {

/// The targets that were asked for: looking a device up by its name takes longer than most questions about it.
class KnownTargets {
 public:
  explicit KnownTargets(const TargetOf& target_of) : target_of_(target_of) {}
  const Target& operator()(Symbol device) {
    for (const auto& [name, target] : known_)
      if (name == device) return *target;
    known_.emplace_back(device, &target_of_(device));
    return *known_.back().second;
  }

 private:
  const TargetOf& target_of_;
  std::vector<std::pair<Symbol, const Target*>> known_;
};

}  // namespace

Schedule make_schedule(const UOp& sink, const TargetOf& any_target, const ScheduleOptions& options) {
  KnownTargets known(any_target);
  const TargetOf target_of = [&](Symbol device) -> const Target& { return known(device); };
  if (options.spec >= 1) spec::verify_tensor_graph(sink);
  Normalized n = normalize(sink, options.open_numbers);
  std::shared_ptr<const Plan> plan;
  const UOp key = cache_key(n, target_of, options);
  if (options.cache) plan = PlanCache::instance().find(key);
  if (plan && options.explains && !plan->explanation) plan = nullptr;
  if (!plan) {
    plan = make_plan(n, target_of, options);
    if (plan->explanation && log_enabled(3)) log_line(plan->explanation->text());
    if (options.cache) PlanCache::instance().add(key, plan);
  }
  return {std::move(plan), std::move(n.inputs), std::move(n.variables)};
}

CacheCounts schedule_cache_counts() { return PlanCache::instance().counts(); }

}  // namespace tinygrad::schedule
