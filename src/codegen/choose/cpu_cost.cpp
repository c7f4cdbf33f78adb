#include "codegen/choose/cpu_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/choose/access_cost.h"
#include "codegen/choose/chunks.h"
#include "codegen/choose/memory_cost.h"
#include "codegen/choose/window_cost.h"
#include "target/costs.h"

namespace tinygrad::codegen {

namespace {

constexpr double compile_cycles = 4;  // of an operation, spread over tens of thousands of runs

/// The part of reading a whole tile anew for each block of rows that the work does not hide; fitted to products on Zen 3.
constexpr double not_beside_work = 0.25;

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

/// The factor of work that the masked end of a tile throws away, along one axis.
double masked_work(int64_t size, int64_t n) {
  const int64_t computed = (size + n - 1) / n * n;
  return double(computed) / double(size);
}

/// True if each copy along the tile's axis `i` only chooses among values, and the tile has all of the axis: a value is computed once.
bool is_known(const CpuNest& in, const NestedWork& w, const Tile& t, int i) {
  return has_axis(w.chosen, t.axis[i]) && t.count[i] == in.axis(t.axis[i]).size;
}

/// True if a tile has all vectors along an axis, or half of them: which of their lanes are masked is known where they are written out.
bool has_whole_rows(const PlannedLoops& loops, const Tile& t) {
  return std::ranges::all_of(loops.plan.lanes, [&](const Lane& l) { return 2 * loops.step_of(l.axis, t) >= loops.in.axis(l.axis).size; });
}

/// How often the loops around a resident tile read an element of it.
double uses(const PlannedLoops& loops, const NestedWork& w, const Tile& t) {
  double n = 1;
  for (size_t i = 0; i < loops.in.axes(); ++i)
    if (!loops.in.axis(int(i)).is_reduce && has_axis(w.inside, int(i)) && !has_axis(w.depends, int(i)))
      n *= std::max(1.0, double(loops.in.axis(int(i)).size) / double(loops.step_of(int(i), t)));
  return n;
}

/// Vectors of an access that share a cache line.
double vectors_a_line(const PlannedLoops& loops, const NestedWork& w) {
  const Lanes& lanes = loops.plan.lanes;
  const bool vector = std::any_of(lanes.begin(), lanes.end(), [&](const Lane& l) { return has_axis(w.depends, l.axis); });
  const double line = double(general_costs().memory.line_bytes);
  return std::max(1.0, line / double((vector ? lanes.widest() : 1) * loops.in.nest.item_bytes));
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

/// Operations that the copies of a tile have besides those of the first.
int64_t more_operations(const CpuNest& in, const Tile& t) {
  if (t.axis[0] < 0) return 0;
  const int64_t first = in.operations_along(t.axis[0], t.axis[0]) * (t.count[0] - 1);
  if (t.axis[1] < 0) return first;
  const int64_t second = in.operations_along(t.axis[1], t.axis[1]) * (t.count[1] - 1);
  return first + second + in.operations_along(t.axis[0], t.axis[1]) * (t.count[0] - 1) * (t.count[1] - 1);
}

}  // namespace

TileCosts::TileCosts(const PlannedLoops& loops)
    : loops_(loops),
      work_(work_of(loops, loops.plan.lanes)),
      wanted_chunks_(wanted_chunks(loops.in, work_)),
      panels_(panel_cycles(loops)),
      partial_results_(partial_result_cycles(loops)) {
  const CpuNest& in = loops.in;
  uint64_t known_gates = 0;  // arguments whose masks may be known
  for (const WorkPart& p : in.parts) {
    const NestedWork& w = *p.work;
    const double share = share_of(loops, w, loops.plan.lanes);
    if (!w.is_access) most_trips_ = std::max(most_trips_, w.trips * share);
    if (loops.is_in_fill(w)) continue;
    const bool in_front = stays(loops, w);
    Part part{.part = &p, .cycles = p.cost * w.trips, .share = in_front ? share_of_staying(loops, w) : share, .stays = in_front};
    part.cost = part.cycles * part.share;
    const auto is_strided = [&](const Lane& l) { return has_axis(w.depends, l.axis) && is_every_few(w, l); };
    part.may_fill_runs = !in_front && w.node.is(Op::STORE) && std::ranges::any_of(loops.plan.lanes, is_strided);
    if (w.is_access && !in.is_joined() && !loops.is_staged(w)) part.known_masks = share_of_known_masks(in, w, loops.plan.lanes);
    if (part.known_masks < 1) known_gates |= w.argument;
    if (w.is_access) note_lines(part);
    parts_.push_back(part);
  }
  for (Part& p : parts_)
    if (const uint64_t gates = p.part->work->gates; gates && !(gates & ~known_gates)) p.known_masks = 0;
  if (in.is_joined()) joins_ = joins(in, loops.plan.lanes);
}

/// Whether accesses wait for cache lines: one that moves to another line at each step of the innermost loop waits, neighbouring vectors
/// share a line.
void TileCosts::note_lines(Part& p) {
  const NestedWork& w = *p.part->work;
  if (loops_.is_windowed(w)) {
    p.lines = Lines::of_window;
  } else if (loops_.is_staged(w)) {
    p.line_cost = 0.5;
  } else if (loops_.is_resident(w)) {
    p.lines = Lines::of_resident;
    reads_unpacked_ = true;
  } else if (has_axis(w.depends, p.part->innermost)) {
    p.line_cost = 0.5;
    if (p.part->is_close) return;
    p.lines = Lines::shared_by_copies;
    p.vectors_a_line = vectors_a_line(loops_, w);
  }
}

double TileCosts::line_cost(const Part& p, const Tile& t, bool least) const {
  const NestedWork& w = *p.part->work;
  const auto neighbours = [&](int axis) { return axis >= 0 && std::abs(w.strides[size_t(axis)]) == 1; };
  switch (p.lines) {
    case Lines::any: break;
    // Copies share a line of the window, or have one each.
    case Lines::of_window: return neighbours(t.axis[0]) || neighbours(t.axis[1]) ? 0.5 : 0.65;
    case Lines::of_resident: return least || loops_.is_dense(w, t) ? 0.5 : 0.9 + 1.1 / uses(loops_, w, t);
    case Lines::shared_by_copies: {
      double shared = 1;
      for (int i = 0; i < 2; ++i)
        if (t.axis[i] >= 0 && w.strides[size_t(t.axis[i])] == 1) shared = double(t.count[i]);
      return 0.5 + 1.5 / std::min(shared, p.vectors_a_line);
    }
  }
  return p.line_cost;
}

double TileCosts::work(const Tile& t, bool least) const {
  const CpuNest& in = loops_.in;
  uint64_t axes[2] = {};
  double ends[2] = {1, 1};
  for (int i = 0; i < 2; ++i) {
    if (t.axis[i] < 0) continue;
    axes[i] = uint64_t{1} << t.axis[i];
    ends[i] = masked_work(loops_.left[size_t(t.axis[i])], t.count[i]);
  }
  const double both_ends = ends[0] * ends[1];
  const BoundedWork bounded(in, loops_.plan.lanes, t);
  double sum = 0;
  for (const Part& p : parts_) {
    const NestedWork& w = *p.part->work;
    double c = p.may_fill_runs ? p.cycles * (p.share * share_of_run(loops_.plan.lanes, w, t)) : p.cost;
    if (w.is_access) c *= line_cost(p, t, least);
    const bool inside[2] = {(w.inside & axes[0]) != 0, (w.inside & axes[1]) != 0};
    c *= inside[0] ? inside[1] ? both_ends : ends[0] : inside[1] ? ends[1] : 1;
    c *= bounded.of(w);
    if (p.known_masks < 1 && has_whole_rows(loops_, t)) c *= p.known_masks;
    for (int i = 0; i < 2; ++i)
      if (inside[i] && (!(w.depends & axes[i]) || is_known(in, w, t, i))) c /= double(t.count[i]);
    if (w.node.is(Op::REDUCE)) {
      // A step of a reduction waits for the one before, unless independent accumulators hide the latency.
      c *= std::max(1.0, in.independent / double(t.copies() * p.part->beside * loops_.steps_at_once(w, t)));
      c += spills(loops_, w, p.share, t);
    }
    sum += c;
  }
  return sum;
}

CpuCost TileCosts::begin(const Tile& t) const {
  return {.work = work(t, true),
          .loops = most_trips_ / double(t.copies()),
          .compile = compile_cycles * double(more_operations(loops_.in, t)),
          .panels = panels_,
          .partial_results = partial_results_};
}

CpuCost TileCosts::of(const Tile& t) const {
  return *below(t, begin(t), std::numeric_limits<double>::quiet_NaN());  // nothing is over that
}

// The terms in the order of what they take to find out.
std::optional<CpuCost> TileCosts::below(const Tile& t, CpuCost cost, double limit) const {
  const CpuNest& in = loops_.in;
  const auto is_over = [&] { return cost.total() >= limit; };
  if (reads_unpacked_) cost.work = work(t, false);
  cost.partial_results = partial_results_;
  if (is_over()) return {};
  if (in.is_joined()) {
    cost.joins = joins_;
  } else {
    cost.joins = joins(in, loops_.plan.lanes, t);
    cost.first_loads = first_loads(loops_, t);
    cost.traffic = traffic_cycles(loops_, t);
    if (is_over()) return {};
    cost.partial_lines = partial_line_cycles(loops_, t);
    cost.store_streams = store_stream_cycles(loops_, t);
  }
  cost.windows = window_cycles(loops_, t);
  cost.panels = panels_ + panel_line_cycles(loops_, t);
  if (is_over()) return {};
  cost.resident = resident_cycles(loops_, t);
  if (loops_.plan.operands.whole) cost.traffic += not_beside_work * cost.resident;
  if (!in.is_joined()) cost.resident += streamed_cycles(loops_, t);
  if (is_over()) return {};
  if (in.nest.total_cost >= worth_tiling && in.target.has_threads) share_out(t, cost);
  if (is_over()) return {};
  return cost;
}

void TileCosts::share_out(const Tile& t, CpuCost& cost) const {
  std::vector<int64_t> left = loops_.left;
  for (int i = 0; i < 2; ++i)
    if (t.count[i] > 1) left[size_t(t.axis[i])] = (left[size_t(t.axis[i])] + t.count[i] - 1) / t.count[i];
  const Chunks chunks = chunks_of(loops_, t, left, wanted_chunks_, work_);
  const bool is_idle = leaves_threads_idle(chunks.count) || (chunks.count == 1 && wanted_chunks_ > 1);
  cost.waiting = is_idle ? 1 / double(chunks.count) : std::min(0.05, 0.5 / double(chunks.count));
  if (chunks.axis < 0) return;
  cost.refills = double(fills_of(loops_, chunks) - 1) * refill_cycles(loops_, t, chunks.axis);
  cost.first_loads += short_run_cycles(loops_, chunks.axis, chunks.count);
}

CpuCost cost_of(const CpuNest& nest, const CpuPlan& plan) { return TileCosts(PlannedLoops(nest, plan)).of(plan.tile); }

}  // namespace tinygrad::codegen
