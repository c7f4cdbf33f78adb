#include "schedule/join_nests.h"

#include <algorithm>

#include "schedule/cost.h"
#include "schedule/kernel_calls.h"
#include "shape/sint.h"
#include "uop/build.h"
#include "uop/graph.h"
#include "uop/node_map.h"

namespace tinygrad::schedule {

namespace {

/// Together not worth a second thread: what one chunk takes at least, in launches.
constexpr double most_work = 20;

/// What a kernel touches and takes.
struct Use {
  NodeSet reads, writes;
  std::vector<UOp> all;
  double work = 0, weight = 0;

  void add(const Use& o) {
    for (const UOp& u : o.all) {
      if (o.reads.contains(u)) read(u);
      if (o.writes.contains(u)) write(u);
    }
    work += o.work;
    weight += o.weight;
  }
  void read(const UOp& u) {
    if (reads.insert(u) && !writes.contains(u)) all.push_back(u);
  }
  void write(const UOp& u) {
    if (writes.insert(u) && !reads.contains(u)) all.push_back(u);
  }
  /// One writes what the other touches.
  bool conflicts(const Use& o) const {
    return std::ranges::any_of(o.all, [&](const UOp& u) { return writes.contains(u) || (reads.contains(u) && o.writes.contains(u)); });
  }
};

Use use_of(const UOp& step, const Costs& costs) {
  Use use;
  if (is_copy(step)) {
    use.read(copied_from(step));
    use.write(copied_to(step));
    return use;
  }
  const UOp& nest = only_nest(step);
  double places = 1;
  for (const UOp& r : loops_of(nest)) places *= double(SInt(r.src(0)).max());
  for (const UOp& s : stores_of(nest)) {
    use.write(stored_to(s));
    for (const UOp& u : toposort(std::vector<UOp>{stored_value(s), stored_at(s)})) {
      use.weight += compile_weight(u);
      if (u.is(Op::LOAD)) use.read(u.src(0).src(0));
    }
    use.work += places * (scalar_cost(stored_value(s), costs) + costs.memory.stored_byte * itemsize(stored_to(s).dtype()));
  }
  return use;
}

class Joiner {
 public:
  explicit Joiner(const TargetOf& target_of) : target_of_(target_of) {}

  void add(const UOp& step) {
    if (is_loop(step)) {
      flush();
      out_.push_back(loop_around(join_nests(step.src(0), target_of_).src(), step.src(1)));
      return;
    }
    const Devices devices = devices_of_call(step);
    const Target& target = target_of_(devices.first());
    const Costs& costs = general_costs();
    const Use use = use_of(step, costs);
    const double most = most_work * costs.memory.launch;
    const bool small = !is_copy(step) && !target.has_groups && use.work <= most;
    const bool fits = waiting_.empty() || (devices_of_call(waiting_[0]) == devices && together_.work + use.work <= most &&
                                           together_.weight + use.weight <= most_joined_weight &&
                                           together_.all.size() + use.all.size() <= size_t(target.max_buffers));
    if (together_.conflicts(use) || (small && !fits)) flush();
    if (small) {
      together_.add(use);
      waiting_.push_back(step);
    } else {
      out_.push_back(step);
    }
  }

  UOp take() {
    flush();
    return linear_of(out_);
  }

 private:
  void flush() {
    std::vector<UOp> nests;
    for (const UOp& k : waiting_) nests.push_back(only_nest(k));
    if (!nests.empty()) out_.push_back(kernel_of(nests, binds_of(waiting_[0])));
    waiting_.clear();
    together_ = Use();
  }

  const TargetOf& target_of_;
  std::vector<UOp> out_, waiting_;
  Use together_;  ///< of what is waiting
};

}  // namespace

UOp join_nests(const UOp& linear, const TargetOf& target_of) {
  Joiner joiner(target_of);
  for (const UOp& step : linear.src()) joiner.add(step);
  return joiner.take();
}

}  // namespace tinygrad::schedule
