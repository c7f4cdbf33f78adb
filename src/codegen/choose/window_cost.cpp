#include "codegen/choose/window_cost.h"

#include <algorithm>
#include <cmath>

#include "codegen/choose/access_cost.h"
#include "target/costs.h"

namespace tinygrad::codegen {

namespace {

/// False for an axis with blocks that overlap, and for masked terms of a sum: their loops share no window with others. Masked results only
/// bound it.
bool is_split_evenly(const PlannedLoops& loops, int axis, const Tile& t) {
  const NestAxis& a = loops.in.axis(axis);
  const int64_t lanes = loops.plan.lanes.along(axis), vectors = (a.size + lanes - 1) / lanes;
  if (a.is_reduce && a.size % lanes != 0) return false;
  return vectors % (loops.step_of(axis, t) / lanes) == 0;
}

/// Elements of a load's tile that is filled by `iterations` of each axis, overlaps of a window counted once.
double elements_of_window(const PlannedLoops& loops, const NestedWork& w, const Tile& t, std::span<const double> iterations) {
  const double lanes = std::max(1, loops.in.target.lanes(w.node.dtype()));
  double elements = 1;
  for (const auto& steps : w.windows) {
    double window = 1, apart = 1;
    bool is_row = false;
    for (const AxisStep& s : steps) {
      const double n = double(loops.step_of(s.axis, t)), i = iterations[size_t(s.axis)];
      if (steps.size() > 1 && !is_split_evenly(loops, s.axis, t)) {
        apart *= std::ceil(i / n) * n;
        continue;
      }
      const double each = double(loops.plan.lanes.along(s.axis));
      window += double(s.size) * (std::ceil(i / each) * each - 1);
      is_row = is_row || std::abs(w.strides[size_t(s.axis)]) == 1;
    }
    elements *= apart * (is_row && steps.size() > 1 ? std::ceil(window / lanes) * lanes : window);
  }
  return elements;
}

/// Elements of a load's tile where windows do not overlap: the product of the iterations that the load depends on.
double elements_apart(const PlannedLoops& loops, const NestedWork& w, std::span<const double> iterations) {
  double elements = 1;
  for (size_t i = 0; i < loops.in.axes(); ++i)
    if (has_axis(w.depends, int(i))) elements *= iterations[i];
  return elements;
}

/// Cycles to copy one element of a window.
double copying(const PlannedLoops& loops, const NestedWork& w) {
  const Lanes& lanes = loops.plan.lanes;
  const bool computed = w.argument & loops.plan.operands.computed;
  const auto lies_together = [&](const Lane& l) {
    return !has_axis(w.depends, l.axis) || std::abs(w.strides[size_t(l.axis)]) == 1 || (is_every_few(w, l) && !computed);
  };
  const bool rows = std::ranges::any_of(w.strides, [](int64_t s) { return std::abs(s) == 1; }) && std::ranges::all_of(lanes, lies_together);
  const double bytes = double(itemsize(w.node.dtype()));
  const MemoryCosts& costs = general_costs().memory;
  return rows ? costs.copied_vector / std::max(1.0, double(loops.in.target.vector_bits) / 8 / bytes) : costs.copied_element;
}

/// Cycles to compute one element of a tile of computed values that has `iterations` of each axis.
double computing(const PlannedLoops& loops, const NestedWork& load, std::span<const double> iterations) {
  const CpuNest& in = loops.in;
  const MemoryCosts& costs = general_costs().memory;
  const double vector = std::max(1, in.target.lanes(load.node.dtype()));
  const double bytes = double(itemsize(load.node.dtype()));
  double lanes = 1, run = bytes;
  int64_t total = int64_t(bytes);
  for (size_t i = 0; i < in.axes(); ++i) {
    if (has_axis(load.depends, int(i))) total *= in.axis(int(i)).size;
    if (load.strides[i] != 1 || iterations[i] <= 1) continue;
    lanes = iterations[i] / std::ceil(iterations[i] / vector);
    run = bytes * (iterations[i] < double(in.axis(int(i)).size) ? iterations[i] : costs.long_run);
  }
  for (const Lane& l : loops.plan.lanes)
    if (has_axis(load.depends, l.axis)) lanes = double(l.lanes);
  double cycles = 1 / lanes;  // to store it
  for (const WorkPart& p : in.parts) {
    const NestedWork& w = *p.work;
    if (!(w.computed & load.argument)) continue;
    double times = 1;
    for (size_t i = 0; i < in.axes(); ++i)
      if (has_axis(load.depends & ~w.depends, int(i))) times /= iterations[i];
    const auto is_gathered = [&](const Lane& l) { return has_axis(w.depends, l.axis) && std::abs(w.strides[size_t(l.axis)]) != 1; };
    cycles += times * (w.is_access && std::ranges::any_of(loops.plan.lanes, is_gathered) ? costs.copied_element : p.cost / lanes);
    // A run that begins anywhere leaves parts of its first and last cache line unused.
    if (w.is_access && run < costs.long_run && total > in.target.l2_bytes)
      cycles += times * bytes * (1 + double(costs.line_bytes) / run) / in.rates.short_runs;
  }
  return cycles;
}

}  // namespace

WindowTile window_tile(const PlannedLoops& loops, const NestedWork& w, const Tile& t) {
  const CpuNest& in = loops.in;
  const bool computed = w.argument & loops.plan.operands.computed;
  const double bytes = double(computed ? w.computed_bytes : int64_t(itemsize(w.node.dtype())));
  const double copied = copying(loops, w);
  std::vector<double> iterations;
  for (const NestAxis& a : in.nest.axes) iterations.push_back(double(a.size));
  const double most = double(in.target.l2_bytes - tile_bytes(loops, t, loops.plan.operands.resident));
  WindowTile best;
  double fills = 1;
  for (size_t n = loops.inside_out.size(); n-- > 0;) {
    const int i = loops.inside_out[n];
    const double inside = std::min(double(loops.is_around(i) ? loops.trips_inside(i) : loops.step_of(i, t)), iterations[size_t(i)]);
    fills *= std::ceil(iterations[size_t(i)] / inside);
    iterations[size_t(i)] = inside;
    const double elements = computed ? elements_apart(loops, w, iterations) : elements_of_window(loops, w, t, iterations),
                 each = computed ? computing(loops, w, iterations) : copied;
    if (const WindowTile found{i, fills * elements * each, elements * bytes};
        (found.bytes <= most || n == 0) && (best.axis < 0 || found.cycles < best.cycles))
      best = found;
  }
  return best;
}

double window_cycles(const PlannedLoops& loops, const Tile& t) {
  double sum = 0;
  if (!loops.plan.operands.windows) return sum;
  for (const NestedWork& w : loops.in.nest.works)
    if (loops.is_windowed(w)) sum += window_tile(loops, w, t).cycles;
  return sum;
}

double window_bytes(const PlannedLoops& loops, const Tile& t) {
  double sum = 0;
  if (!loops.plan.operands.windows) return sum;
  for (const NestedWork& w : loops.in.nest.works)
    if (loops.is_windowed(w)) sum += window_tile(loops, w, t).bytes;
  return sum;
}

}  // namespace tinygrad::codegen
