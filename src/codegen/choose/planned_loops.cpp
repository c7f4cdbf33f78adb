#include "codegen/choose/planned_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/small_vector.h"
#include "codegen/choose/cache_sets.h"
#include "codegen/choose/memory_cost.h"
#include "codegen/choose/window_cost.h"

namespace tinygrad::codegen {

namespace {

uint64_t axes_of_resident(const PlannedLoops& loops) {
  uint64_t bits = 0;
  if (loops.plan.operands.resident == 0 || loops.plan.operands.whole) return bits;
  for (const NestedWork& w : loops.in.nest.works)
    if (loops.is_resident(w)) bits |= w.depends;
  return bits;
}

std::vector<int64_t> left_by(const CpuNest& in, const Lanes& lanes) {
  std::vector<int64_t> left;
  for (const NestAxis& a : in.nest.axes) left.push_back(a.size);
  for (const Lane& l : lanes) left[size_t(l.axis)] = (left[size_t(l.axis)] + l.lanes - 1) / l.lanes;
  return left;
}

std::vector<int> order_inside_out(const CpuNest& in, uint64_t resident_axes, uint64_t around) {
  std::vector<int> out;
  const auto add = [&](auto&& which) {
    for (size_t i = in.axes(); i-- > 0;)
      if (which(int(i))) out.push_back(int(i));
  };
  const auto is_output = [&](int i) { return !in.axis(i).is_reduce; };
  add([&](int i) { return is_output(i) && !has_axis(resident_axes, i); });
  add([&](int i) { return has_axis(around, i); });
  add([&](int i) { return is_output(i) && has_axis(resident_axes, i); });
  return out;
}

/// Iterations of a reduced axis inside of output loops, rounded up to whole vectors.
int64_t whole_vectors(const PlannedLoops& loops, int axis) {
  const int64_t lanes = loops.plan.lanes.along(axis);
  return (loops.trips_inside(axis) + lanes - 1) / lanes * lanes;
}

/// How much of the second cache a resident tile takes that lies as the argument does.
double crowding_in_l2(const PlannedLoops& loops, const NestedWork& w, const Tile& t) {
  SmallVector<double, 8> counts;
  for (size_t i = 0; i < loops.in.axes(); ++i)
    counts.push_back(double(loops.in.axis(int(i)).is_reduce ? whole_vectors(loops, int(i)) : loops.step_of(int(i), t)));
  return crowding_of(loops.in, w, counts, loops.in.target.l2_bytes, loops.in.target.core.l2_ways);
}

/// The rows of a tensor core are loaded for one after another.
bool is_along_vectors(const Lanes& lanes, int axis) { return lanes.core ? axis == lanes.core->n.axis : lanes.along(axis) > 1; }

/// Vectors that stay in registers while one step of all copies runs. Scalars that are broadcast are loaded where they are used; along a sum
/// all factors are vectors, and compilers load those of the longer side of a tile first.
int64_t vectors_of_step(const PlannedLoops& loops, const Tile& t) {
  if (std::ranges::any_of(loops.plan.lanes, [&](const Lane& l) { return loops.in.axis(l.axis).is_reduce; }) && !loops.plan.lanes.core)
    return std::max(t.count[0], t.count[1]);
  int64_t along = 0;
  for (int i = 0; i < 2; ++i)
    if (is_along_vectors(loops.plan.lanes, t.axis[i])) along = t.count[i];
  return along ? along : std::min(t.count[0], t.count[1]);
}

/// Steps of the loops that are written out in a joined reduction's step, in all copies of the tile.
int64_t written_out_steps(const PlannedLoops& loops, const Tile& t) {
  const CpuNest& in = loops.in;
  int64_t most = 0;
  for (const NestedWork& w : in.nest.works) {
    if (!w.node.is(Op::REDUCE)) continue;
    int64_t steps = 0;
    for (size_t i = 0; i < in.axes(); ++i)
      if (has_axis(w.inside, int(i)) && is_written_out(in, loops.left, int(i))) steps = std::max<int64_t>(steps, 1) * loops.left[i];
    for (int i = 0; i < 2; ++i)
      if (t.axis[i] >= 0 && has_axis(w.depends, t.axis[i])) steps *= t.count[i];
    most = std::max(most, steps);
  }
  return most;
}

}  // namespace

PlannedLoops::PlannedLoops(const CpuNest& nest, const CpuPlan& p)
    : in(nest),
      plan(p),
      resident_axes(axes_of_resident(*this)),
      left(left_by(nest, p.lanes)),
      inside_out(order_inside_out(nest, resident_axes, p.blocks.axes)) {}

bool PlannedLoops::is_resident(const NestedWork& w) const {
  return (w.argument & plan.operands.resident) && (plan.joined_steps <= 1 || !has_axis(w.depends, in.nest.joined_axis));
}

bool PlannedLoops::is_in_fill(const NestedWork& w) const {
  return ((w.computed & plan.operands.computed) && !is_windowed(w)) || (w.converts & converted_panels()) ||
         (w.gates && !(w.gates & ~(plan.operands.panels() | plan.operands.windows)));
}

bool PlannedLoops::is_converted(const NestedWork& w) const { return w.converted && (w.argument & converted_panels()); }

int64_t PlannedLoops::item_bytes(const NestedWork& w) const {
  return int64_t(itemsize(is_converted(w) ? w.converted.dtype() : w.node.dtype()));
}

int64_t PlannedLoops::trips_around(int i) const {
  const auto& [axes, block] = plan.blocks;
  if (!has_axis(axes, i)) return 1;
  const int64_t size = in.axis(i).size;
  return block && axes >> i == 1 ? size / block : size;
}

int64_t PlannedLoops::elements_along(const NestedWork& w, int axis, const Tile& t) const {
  const int64_t step = step_of(axis, t);
  return plan.operands.whole && is_resident(w) ? (in.axis(axis).size + step - 1) / step * step : step;
}

int64_t PlannedLoops::steps_at_once(const NestedWork& reduce, const Tile& t) const {
  int innermost = -1;
  for (size_t i = 0; i < in.axes(); ++i)
    if (in.axis(int(i)).is_reduce && has_axis(reduce.inside, int(i))) innermost = int(i);
  if (innermost < 0 || !in.uses_once) return 1;
  const int64_t size = left[size_t(innermost)];
  return size <= 8 ? size : most_steps(left, std::span(&innermost, 1), most_accumulators / t.copies());
}

bool PlannedLoops::is_dense(const NestedWork& w, const Tile& t) const {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride and count of each axis
  for (size_t i = 0; i < in.axes(); ++i) {
    if (!has_axis(w.depends, int(i))) continue;
    const int64_t n = in.axis(int(i)).is_reduce ? trips_inside(int(i)) : step_of(int(i), t);
    if (n > 1) steps.emplace_back(std::abs(w.strides[i]), n);
  }
  std::sort(steps.begin(), steps.end());
  int64_t length = 1;
  for (const auto& [step, n] : steps) {
    if (step != length) return false;
    length *= n;
  }
  return true;
}

bool PlannedLoops::may_mask(int axis) const {
  return (plan.operands.resident || plan.operands.computed) &&
         std::none_of(in.nest.works.begin(), in.nest.works.end(), [&](const NestedWork& w) {
           return in.is_reduced_load(w) && !is_staged(w) && !is_in_fill(w) && has_axis(w.depends, axis);
         });
}

int64_t PlannedLoops::registers_each() const {
  const int64_t bits = (plan.lanes.core ? plan.lanes.core->sums : plan.lanes.widest()) * in.nest.item_bytes * 8;
  return in.target.vector_bits ? std::max<int64_t>(1, bits / in.target.vector_bits) : 1;
}

int64_t most_steps(std::span<const int64_t> left, std::span<const int> axes, int64_t most) {
  const auto fits = [&](int i, int64_t n) { return left[size_t(i)] > n && left[size_t(i)] % n == 0; };
  int64_t n = std::max<int64_t>(most, 1);
  while (n > 1 && !std::ranges::all_of(axes, [&](int i) { return fits(i, n); })) --n;
  return n;
}

bool is_written_out(const CpuNest& in, std::span<const int64_t> left, int axis) {
  return in.is_joined() && in.axis(axis).is_known && axis > in.nest.joined_axis && in.axis(axis).is_reduce &&
         left[size_t(axis)] <= most_kept_results;
}

double crowding_of(const CpuNest& in, const NestedWork& w, std::span<const double> counts, int64_t cache_bytes, int ways) {
  const double item = double(itemsize(w.node.dtype()));
  SmallVector<AlongAxis, 8> axes;
  for (size_t i = 0; i < in.axes(); ++i)
    if (has_axis(w.depends, int(i))) axes.push_back({std::abs(double(w.strides[i])) * item, counts[i]});
  return crowding({.bytes = cache_bytes, .ways = ways, .line_bytes = general_costs().memory.line_bytes}, axes);
}

int64_t tile_bytes(const PlannedLoops& loops, const Tile& t, uint64_t arguments) {
  const CpuNest& in = loops.in;
  int64_t bytes = 0;
  for (const NestedWork& w : in.nest.works) {
    if (!(w.argument & arguments)) continue;
    int64_t of_one = loops.item_bytes(w);
    for (size_t i = 0; i < in.axes() && of_one <= in.target.l2_bytes; ++i)
      if (has_axis(w.depends, int(i)))
        of_one *= in.axis(int(i)).is_reduce ? whole_vectors(loops, int(i)) : loops.elements_along(w, int(i), t);
    bytes += of_one;
  }
  return bytes;
}

int64_t partial_result_bytes(const PlannedLoops& loops, const Tile& t) {
  const CpuNest& in = loops.in;
  int64_t bytes = in.nest.item_bytes;
  for (size_t i = 0; i < in.axes() && bytes <= in.target.l2_bytes; ++i) {
    if (in.axis(int(i)).is_reduce) continue;
    const int64_t size = in.axis(int(i)).size, chunks = std::min(size, chunks_of_long_runs(loops, int(i)));
    bytes *= has_axis(loops.resident_axes, int(i)) ? loops.step_of(int(i), t) : chunks < size ? (size + chunks - 1) / chunks : size;
  }
  return bytes;
}

bool fits_cache(const PlannedLoops& loops, const Tile& t) {
  const CpuNest& in = loops.in;
  const uint64_t resident = loops.plan.operands.resident;
  // Rows of a tile that is not packed may fall into few sets of the cache, and other data passes through all of them.
  double crowded = 1;
  for (const NestedWork& w : in.nest.works)
    if (loops.is_resident(w) && !loops.is_staged(w) && !loops.is_dense(w, t)) crowded = std::max(crowded, crowding_in_l2(loops, w, t));
  const double share = crowded > 1 ? l2_share : 1;
  const int64_t most = int64_t(share * double(in.target.l2_bytes) / crowded) - int64_t(window_bytes(loops, t));
  if (!loops.plan.blocks.axes) return tile_bytes(loops, t, resident) <= most;
  if ((loops.resident_axes | in.reduce_axes) == (uint64_t{2} << (in.axes() - 1)) - 1) return false;  // no loop uses the tile again
  const auto is_reduce = [&](const Lane& l) { return in.axis(l.axis).is_reduce; };
  const Lanes& lanes = loops.plan.lanes;
  const bool rows = lanes.core || std::none_of(lanes.begin(), lanes.end(), is_reduce);
  const int64_t bytes = tile_bytes(loops, t, resident);
  return rows && bytes <= most && bytes + partial_result_bytes(loops, t) <= in.target.l2_bytes;
}

bool fits_registers(const PlannedLoops& loops, const Tile& t) {
  if (loops.in.is_joined())  // spills have a price
    return t.copies() <= (t.axis[1] < 0 ? most_kept_results : most_kept_results / 2) && written_out_steps(loops, t) <= most_written_out;
  const int64_t each = loops.registers_each();
  const int64_t more = loops.plan.lanes.core ? loops.plan.lanes.core->temporaries : 0;
  return (accumulators(loops.in, t) + vectors_of_step(loops, t) + more) * each + 1 <= loops.in.registers();
}

int64_t accumulators(const CpuNest& in, const Tile& t) {
  int64_t most = t.copies();
  for (const ReducePart& r : in.reduces) {
    int64_t sum = 0;
    for (const ReducePart& other : in.reduces)
      if (r.loops & other.loops) sum += accumulators(other, t);
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace tinygrad::codegen
