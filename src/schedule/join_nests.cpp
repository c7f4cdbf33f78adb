#include "schedule/join_nests.h"

#include <algorithm>
#include <utility>

#include "schedule/cost.h"
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

Use use_of(const MergedKernel& k) {
  const CostModel model;
  Use use;
  if (k.copied) {
    use.read(k.copied);
    use.write(k.outputs[0].target);
    return use;
  }
  double places = 1;
  for (const UOp& r : k.ranges) places *= double(SInt(r.src(0)).max());
  for (const Output& o : k.outputs) {
    use.write(o.target);
    for (const UOp& u : toposort(std::vector<UOp>{o.value, o.target_index})) {
      use.weight += compile_weight(u);
      if (u.is(Op::LOAD)) use.read(u.src(0).src(0));
    }
    use.work += places * (scalar_cost(o.value, model) + model.per_stored_byte * itemsize(o.target.dtype()));
  }
  return use;
}

}  // namespace

std::vector<std::vector<MergedKernel>> join_nests(std::vector<MergedKernel> kernels, const TargetOf& target_of) {
  std::vector<std::vector<MergedKernel>> out;
  std::vector<MergedKernel> waiting;
  Use together;
  const auto flush = [&] {
    if (!waiting.empty()) out.push_back(std::exchange(waiting, {}));
    together = Use();
  };
  for (MergedKernel& k : kernels) {
    const Use use = use_of(k);
    const Target& target = target_of(k.device);
    const double most = most_work * CostModel().per_kernel;
    const bool small = !k.copied && !target.has_groups && use.work <= most;
    const bool fits = waiting.empty() || (waiting[0].device == k.device && together.work + use.work <= most &&
                                          together.weight + use.weight <= most_joined_weight &&
                                          together.all.size() + use.all.size() <= size_t(target.max_buffers));
    if (together.conflicts(use) || (small && !fits)) flush();
    if (small) {
      together.add(use);
      waiting.push_back(std::move(k));
    } else {
      out.push_back({std::move(k)});
    }
  }
  flush();
  return out;
}

}  // namespace tinygrad::schedule
