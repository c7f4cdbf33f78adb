#include "codegen/choose/cpu_cost.h"

#include <algorithm>
#include <cmath>

#include "codegen/choose/access_cost.h"
#include "codegen/choose/chunks.h"
#include "codegen/choose/memory_cost.h"
#include "codegen/choose/window_cost.h"
#include "target/costs.h"

namespace tinygrad::codegen {

namespace {

constexpr double compile_cycles = 4;  // of an operation, spread over tens of thousands of runs

/// The factor of a strided STORE's cost if the tile's copies store what lies between its lanes, so that whole runs are written.
double share_of_run(const Lanes& lanes, const NestedWork& w, const Tile& t) {
  if (!w.node.is(Op::STORE)) return 1;
  for (const Lane& l : lanes)
    for (int i = 0; i < 2; ++i)
      if (has_axis(w.depends, l.axis) && has_axis(w.depends, t.axis[i]) && is_every_few(w, l) && w.strides[size_t(t.axis[i])] == 1 &&
          t.count[i] == w.strides[size_t(l.axis)])
        return 1 / double(l.lanes);
  return 1;
}

/// The factor of work that the masked ends of tiles throw away.
double masked_work(const PlannedLoops& loops, const NestedWork& w, const Tile& t) {
  double more = 1;
  for (int i = 0; i < 2; ++i) {
    if (!has_axis(w.inside, t.axis[i])) continue;
    const int64_t size = loops.left[size_t(t.axis[i])], n = t.count[i], computed = (size + n - 1) / n * n;
    more *= double(computed) / double(size);
  }
  return more;
}

/// True if each copy along the tile's axis `i` only chooses among values, and the tile has all of the axis: a value is computed once.
bool is_known(const CpuNest& in, const NestedWork& w, const Tile& t, int i) {
  return has_axis(w.chosen, t.axis[i]) && t.count[i] == in.axis(t.axis[i]).size;
}

/// How often the loops around a resident tile read an element of it.
double uses(const PlannedLoops& loops, const NestedWork& w, const Tile& t) {
  double n = 1;
  for (size_t i = 0; i < loops.in.axes(); ++i)
    if (!loops.in.axis(int(i)).is_reduce && has_axis(w.inside, int(i)) && !has_axis(w.depends, int(i)))
      n *= std::max(1.0, double(loops.in.axis(int(i)).size) / double(loops.step_of(int(i), t)));
  return n;
}

/// The factor of an access's cost for waiting on cache lines: one that moves to another line at each step of the innermost loop waits,
/// neighbouring vectors share a line.
double line_cost(const PlannedLoops& loops, const WorkPart& p, const Tile& t) {
  const CpuNest& in = loops.in;
  const NestedWork& w = *p.work;
  if (loops.is_windowed(w)) {
    const auto neighbours = [&](int axis) { return axis >= 0 && std::abs(w.strides[size_t(axis)]) == 1; };
    return neighbours(t.axis[0]) || neighbours(t.axis[1]) ? 0.5 : 0.65;  // copies share a line of the window, or have one each
  }
  if (loops.is_staged(w)) return 0.5;
  if (loops.is_resident(w)) return loops.is_dense(w, t) ? 0.5 : 0.9 + 1.1 / uses(loops, w, t);
  if (!has_axis(w.depends, p.innermost)) return 1;
  if (p.is_close) return 0.5;
  double shared = 1;
  for (int i = 0; i < 2; ++i)
    if (t.axis[i] >= 0 && w.strides[size_t(t.axis[i])] == 1) shared = double(t.count[i]);
  const Lanes& lanes = loops.plan.lanes;
  const bool vector = std::any_of(lanes.begin(), lanes.end(), [&](const Lane& l) { return has_axis(w.depends, l.axis); });
  const double vectors_a_line =
      std::max(1.0, double(costs_of(in.target).memory.line_bytes) / double((vector ? lanes.widest() : 1) * in.nest.item_bytes));
  return 0.5 + 1.5 / std::min(shared, vectors_a_line);
}

/// Cycles to load and store accumulators that registers do not hold, at each step. `share` is the REDUCE's with vectors.
double spills(const PlannedLoops& loops, const NestedWork& w, double share, const Tile& t) {
  if (!loops.in.is_joined() || !w.node.is(Op::REDUCE)) return 0;
  const int64_t needed = accumulators(reduce_part(w, 0), t) * loops.registers_each(), registers = loops.in.registers();
  return needed <= registers ? 0 : 2 * w.trips * share * (1 - double(registers) / double(needed));
}

/// True for a load that does not change in the joined loop and stands in front of it, as the loops inside that change it are written out.
bool stays(const PlannedLoops& loops, const NestedWork& w) {
  const CpuNest& in = loops.in;
  if (!in.is_joined() || !w.is_access || !has_axis(w.inside, in.nest.joined_axis) || has_axis(w.depends, in.nest.joined_axis)) return false;
  for (size_t i = 0; i < in.axes(); ++i)
    if (has_axis(w.depends, int(i)) && in.axis(int(i)).is_reduce && !is_written_out(in, loops.left, int(i))) return false;
  return true;
}

/// The cost of such a load: once from where it lies, then whole vectors from the stack at each step.
double share_of_staying(const PlannedLoops& loops, const NestedWork& w) {
  double vectors = 1;
  for (const Lane& l : loops.plan.lanes)
    if (has_axis(w.inside, l.axis)) vectors /= double(l.lanes);
  return vectors + share_of(loops, w, loops.plan.lanes) / double(loops.in.axis(loops.in.nest.joined_axis).size);
}

}  // namespace

TileCosts::TileCosts(const PlannedLoops& loops)
    : loops_(loops),
      work_(work_of(loops, loops.plan.lanes)),
      wanted_chunks_(wanted_chunks(loops.in, work_)),
      panels_(panel_cycles(loops)),
      partial_results_(partial_result_cycles(loops)) {
  for (const WorkPart& p : loops.in.parts) {
    const NestedWork& w = *p.work;
    const double share = share_of(loops, w, loops.plan.lanes);
    if (!w.is_access) most_trips_ = std::max(most_trips_, w.trips * share);
    if (loops.is_in_fill(w)) continue;
    const bool in_front = stays(loops, w);
    parts_.push_back({&p, p.cost * w.trips, in_front ? share_of_staying(loops, w) : share, in_front});
  }
  if (loops.in.is_joined()) joins_ = joins(loops.in, loops.plan.lanes);
}

double TileCosts::work(const Tile& t) const {
  double sum = 0;
  for (const Part& p : parts_) {
    const NestedWork& w = *p.part->work;
    double c = p.cycles * (p.stays ? p.share : p.share * share_of_run(loops_.plan.lanes, w, t)) *
               (w.is_access ? line_cost(loops_, *p.part, t) : 1) * masked_work(loops_, w, t) *
               bounded_work(loops_.in, w, loops_.plan.lanes, t);
    for (int i = 0; i < 2; ++i)
      if (has_axis(w.inside, t.axis[i]) && (!has_axis(w.depends, t.axis[i]) || is_known(loops_.in, w, t, i))) c /= double(t.count[i]);
    // A step of a reduction waits for the one before, unless independent accumulators hide the latency.
    if (w.node.is(Op::REDUCE)) c *= std::max(1.0, loops_.in.independent / double(t.copies() * p.part->beside * loops_.steps_at_once(w, t)));
    sum += c + spills(loops_, w, p.share, t);
  }
  return sum;
}

double TileCosts::compile(const Tile& t) const {
  double more = 0;
  for (const WorkPart& p : loops_.in.parts) {
    int64_t copies = 1;
    for (int i = 0; i < 2; ++i)
      if (has_axis(p.work->depends, t.axis[i])) copies *= t.count[i];
    more += double(p.count * (copies - 1));
  }
  return more * compile_cycles;
}

CpuCost TileCosts::of(const Tile& t) const {
  const CpuNest& in = loops_.in;
  CpuCost cost{.work = work(t),
               .loops = most_trips_ / double(t.copies()),
               .compile = compile(t),
               .resident = resident_cycles(loops_, t),
               .panels = panels_,
               .windows = window_cycles(loops_, t),
               .partial_results = partial_results_};
  if (in.is_joined()) {
    cost.joins = joins_;
  } else {
    cost.resident += streamed_cycles(loops_, t);
    cost.first_loads = first_loads(loops_, t);
    cost.traffic = traffic_cycles(loops_, t);
    cost.partial_lines = partial_line_cycles(loops_, t);
    cost.store_streams = store_stream_cycles(loops_, t);
    cost.joins = joins(in, loops_.plan.lanes, t);
  }
  if (in.nest.total_cost < worth_tiling || !in.target.has_threads) return cost;
  std::vector<int64_t> left = loops_.left;
  for (int i = 0; i < 2; ++i)
    if (t.count[i] > 1) left[size_t(t.axis[i])] = (left[size_t(t.axis[i])] + t.count[i] - 1) / t.count[i];
  const Chunks chunks = chunks_of(loops_, t, left, wanted_chunks_, work_);
  cost.waiting = leaves_threads_idle(chunks.count) ? 1 / double(chunks.count) : std::min(0.05, 0.5 / double(chunks.count));
  if (chunks.axis >= 0) cost.refills = double(chunks.count - 1) * refill_cycles(loops_, t, chunks.axis);
  return cost;
}

CpuCost cost_of(const CpuNest& nest, const CpuPlan& plan) { return TileCosts(PlannedLoops(nest, plan)).of(plan.tile); }

}  // namespace tinygrad::codegen
