#include "schedule/schedule.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/recently_used.h"
#include "rewrite/pipeline.h"
#include "schedule/explanation.h"
#include "schedule/finish_kernels.h"
#include "schedule/gather_again.h"
#include "schedule/join_nests.h"
#include "schedule/kernel_calls.h"
#include "schedule/memory_plan.h"
#include "schedule/merge_kernels.h"
#include "schedule/normalize.h"
#include "schedule/prepare.h"
#include "schedule/rangeify.h"
#include "schedule/repeat_kernels.h"
#include "schedule/select_shards.h"
#include "schedule/shard.h"
#include "schedule/share_kernels.h"
#include "schedule/split_reduces.h"
#include "schedule/split_sums.h"
#include "schedule/unroll_loops.h"
#include "shape/device.h"
#include "spec/verify.h"
#include "uop/build.h"
#include "uop/node_map.h"

namespace tinygrad::schedule {

namespace {

/// Numbers the temporaries that are left, in order, without gaps.
UOp number_temporaries(const UOp& linear, int32_t first) {
  NodeMap<UOp> renumbered;
  std::vector<UOp> held;
  for (const UOp& t : temporaries_of(linear, first)) {
    ParamArg arg = t.arg_as<ParamArg>();
    arg.slot = first + int32_t(held.size());
    renumbered[t] = held.emplace_back(Op::PARAM, t.dtype(), t.src(), arg);
  }
  std::vector<UOp> calls;
  for (const UOp& c : linear.src()) {
    UOps sources(c.src());
    for (size_t i = 1; i < sources.size(); ++i)
      if (const UOp* t = renumbered.find(sources[i])) sources[i] = *t;
    calls.push_back(c.with_src(sources));
  }
  return linear_of(calls);
}

void verify_step(const char* step, const UOp& graph) {
  if (graph.is(Op::LINEAR)) spec::verify_schedule(graph, step);
}

void verify_kernels(const UOp& linear) {
  for (const UOp& c : linear.src())
    if (is_kernel(c)) spec::verify_kernel(c.src(0));
}

std::shared_ptr<const Plan> make_plan(const Normalized& n, const TargetOf& target_of, const ScheduleOptions& options) {
  const int32_t first_temporary = int32_t(n.inputs.size());
  std::optional<Explainer> told;
  if (options.explains) told.emplace();
  Explainer* const explainer = told ? &*told : nullptr;
  auto plan = std::make_shared<Plan>();
  plan->input_count = n.inputs.size();

  rewrite::Pipeline p("schedule", n.sink, options.spec >= 2 ? verify_step : rewrite::Pipeline::Check());
  p.step("shard", shard(p.graph()));
  p.step("prepare", prepare(p.graph()));
  p.step("split sums", split_sums(p.graph()));
  if (options.split_reduces) p.step("split reduces", split_reduces(p.graph(), target_of, explainer ? &explainer->cuts : nullptr));
  p.step("rangeify", rangeify(p.graph(), target_of, first_temporary, explainer));
  p.step("merge kernels", merge_kernels(p.graph(), target_of, first_temporary, explainer));
  p.step("repeat kernels", repeat_kernels(p.graph(), target_of, first_temporary));
  p.step("join nests", join_nests(p.graph(), target_of));
  p.step("finish kernels", finish_kernels(p.graph(), target_of));
  p.step("unroll loops", unroll_loops(p.graph()));
  p.step("share kernels", share_kernels(p.graph(), target_of));
  if (explainer) plan->explanation = std::make_shared<Explanation>(explainer->explain(p.graph()));
  p.step("gather again", gather_again(p.graph(), first_temporary));
  p.step("select shards", select_shards(p.graph(), target_of, first_temporary, options.only_device));
  p.step("number temporaries", number_temporaries(p.graph(), first_temporary));
  if (options.spec >= 1) verify_kernels(p.graph());
  plan->linear = p.graph();
  plan_memory(plan->linear.src(), temporaries_of(plan->linear, first_temporary), first_temporary, options.memory_plan, *plan);
  p.step("memory plan", p.graph());
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
  h.add(options.only_device.str());
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
    const Target*& known = known_[device];
    if (!known) known = &target_of_(device);
    return *known;
  }

 private:
  const TargetOf& target_of_;
  std::unordered_map<Symbol, const Target*> known_;
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
