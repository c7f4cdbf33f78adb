#include "codegen/choose/memory_cost.h"

#include <algorithm>
#include <cmath>

#include "base/small_vector.h"
#include "codegen/choose/access_cost.h"
#include "codegen/choose/cache_sets.h"
#include "codegen/choose/window_cost.h"
#include "codegen/late/vectorize_lanes.h"
#include "target/costs.h"

namespace tinygrad::codegen {

namespace {

/// Whether an array of `of` bytes comes from memory each time. Half of the last cache is for what else is used, here and by others.
bool is_far(const CpuNest& in, double of) { return of > double(std::max(in.target.l2_bytes, in.target.l3_bytes / 2)); }

/// The rate at which an array of `of` bytes is read that the second cache does not hold.
double bytes_a_cycle(const CpuNest& in, double of) { return is_far(in, of) ? in.rates.memory : in.rates.l3; }

/// The same in runs of so many bytes, each of another one of `rows`. Short runs of more rows than the processor follows as streams are not
/// fetched ahead from memory, and parts of their first and last line are read in vain.
double far_rate(const CpuNest& in, double of, double run, double rows) {
  const MemoryCosts& costs = general_costs().memory;
  const double rate = bytes_a_cycle(in, of);
  if (!is_far(in, of) || run >= costs.long_run || rows <= costs.streams) return rate;
  return std::min(rate, in.rates.short_runs) / (1 + double(costs.line_bytes) / 2 / run);
}

/// The part of a tile that the first cache has evicted when it is used again: all of one twice as large.
double evicted_from_l1(const Target& target, double bytes) {
  const auto l1 = double(target.l1_bytes);
  return l1 > 0 ? std::clamp((bytes - l1) / l1, 0.0, 1.0) : 0;
}

/// Elements of one axis that a tile of the innermost output loops has.
double of_tile(const PlannedLoops& loops, int axis, const Tile& t) {
  const NestAxis& a = loops.in.axis(axis);
  return a.is_reduce ? double(loops.trips_inside(axis)) : std::min(double(a.size), double(loops.step_of(axis, t)));
}

using Counts = SmallVector<double, 8>;  ///< iterations of each axis

/// How many elements of memory a load reads in so many iterations. Those of a window overlap: rows that lie a stride apart, and taps that
/// move it by the same stride, are as many rows as both together.
double distinct_elements(const NestedWork& w, const Counts& counts) {
  SmallVector<std::pair<int64_t, double>, 8> moves;  // by how much, how often
  double elements = 1;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!has_axis(w.depends, int(i)) || counts[i] <= 1) continue;
    if (const int64_t stride = std::abs(w.strides[i]); stride > 0)
      moves.push_back({stride, counts[i]});
    else
      elements *= counts[i];
  }
  std::ranges::sort(moves);
  for (size_t i = 0; i < moves.size();) {
    const auto step = double(moves[i].first);
    double run = moves[i].second;
    for (++i; i < moves.size() && double(moves[i].first) < run * step; ++i) run += (moves[i].second - 1) * double(moves[i].first) / step;
    elements *= run;
  }
  return elements;
}

double elements_of_tile(const PlannedLoops& loops, const NestedWork& w, const Tile& t) {
  Counts counts;
  for (size_t i = 0; i < loops.in.axes(); ++i)
    counts.push_back(loops.in.axis(int(i)).is_reduce
                         ? of_tile(loops, int(i), t)
                         : std::min(double(loops.in.axis(int(i)).size), double(loops.elements_along(w, int(i), t))));
  return distinct_elements(w, counts);
}

/// The elements of a load that loops use together, of each axis; they grow from the inside out.
class UsedElements {
 public:
  UsedElements(const PlannedLoops& loops, const NestedWork& w, const Tile& t) : in_(loops.in), w_(w) {
    for (size_t i = 0; i < in_.axes(); ++i) counts_.push_back(has_axis(w.depends, int(i)) ? of_tile(loops, int(i), t) : 1);
  }
  void grow(int axis, double times) { counts_[size_t(axis)] *= times; }
  double count() const { return distinct_elements(w_, counts_); }
  /// The factor by which they take more of a cache than their bytes, as they fall into some of its sets.
  double crowding(int64_t cache_bytes, int ways) const { return crowding_of(in_, w_, counts_, cache_bytes, ways); }
  double in_l1() const { return crowding(in_.target.l1_bytes, in_.target.core.l1_ways); }
  double in_l2() const { return crowding(in_.target.l2_bytes, in_.target.core.l2_ways); }

 private:
  const CpuNest& in_;
  const NestedWork& w_;
  Counts counts_;
};

/// The factor by which lines of the cache hold more than a tile: of runs that begin anywhere, parts of the first and the last line.
double lines_of_runs(const PlannedLoops& loops, const NestedWork& w, const Tile& t) {
  if (loops.is_dense(w, t)) return 1;
  const double item = double(itemsize(w.node.dtype())), line = double(general_costs().memory.line_bytes);
  double run = item;
  bool is_aligned = true;
  for (size_t i = 0; i < loops.in.axes(); ++i) {
    if (!has_axis(w.depends, int(i))) continue;
    if (std::abs(w.strides[i]) == 1)
      run *= of_tile(loops, int(i), t);
    else
      is_aligned = is_aligned && std::fmod(double(w.strides[i]) * item, line) == 0;
  }
  return is_aligned && std::fmod(run, line) == 0 ? 1 : 1 + (line - item) / run;
}

/// The rate at which panels of an array of `of` bytes are filled from beyond the second cache. Each has a short run of many rows, unless
/// the terms of a sum lie together.
double fill_rate(const PlannedLoops& loops, const NestedWork& w, double of) {
  const CpuNest& in = loops.in;
  const double item = double(itemsize(w.node.dtype()));
  double run = item, rows = 1;
  for (size_t i = 0; i < in.axes(); ++i) {
    if (!has_axis(w.depends, int(i))) continue;
    const bool is_row = std::abs(w.strides[i]) == 1;
    if (in.axis(int(i)).is_reduce)
      (is_row ? run : rows) *= double(loops.trips_inside(int(i)));
    else if (is_row)
      run *= double(loops.plan.lanes.along(int(i)));
  }
  return far_rate(in, of, run, rows);
}

/// Bytes of all elements that a load reads.
double bytes_of(const CpuNest& in, const NestedWork& w) {
  Counts sizes;
  for (size_t i = 0; i < in.axes(); ++i) sizes.push_back(double(in.axis(int(i)).size));
  return double(itemsize(w.node.dtype())) * distinct_elements(w, sizes);
}

/// Whether a load reads far memory as it lies along this axis.
bool is_far_row(const PlannedLoops& loops, const NestedWork& w, int axis) {
  return loops.in.is_reduced_load(w) && !loops.is_staged(w) && std::abs(w.strides[size_t(axis)]) == 1 &&
         is_far(loops.in, bytes_of(loops.in, w));
}

/// A load inside of a reduction of what is neither copied nor computed into a tile.
bool is_read_in_place(const PlannedLoops& loops, const NestedWork& w) {
  return loops.in.is_reduced_load(w) && !loops.is_staged(w) && !loops.is_in_fill(w);
}

/// What a tile reads of an array in place: so many rows, each a run of contiguous bytes.
struct TileRows {
  double rows = 1, run = 0;
  double bytes = 0;  ///< of all of the array that is read
};
TileRows rows_of(const PlannedLoops& loops, const NestedWork& w, const Tile& t) {
  const double item = double(itemsize(w.node.dtype()));
  TileRows out{.run = item, .bytes = bytes_of(loops.in, w)};
  for (size_t i = 0; i < loops.in.axes(); ++i) {
    if (!has_axis(w.depends, int(i))) continue;
    if (const auto stride = std::abs(w.strides[i]); stride >= 1 && stride <= most_apart)
      out.run += item * double(stride) * (of_tile(loops, int(i), t) - 1);
    else
      out.rows *= of_tile(loops, int(i), t);  // all terms of a sum, or of its block, before a row goes on
  }
  return out;
}

/// What the lines that a tile reads in place take of the first cache.
double bytes_in_l1(const PlannedLoops& loops, const Tile& t) {
  double sum = 0;
  for (const NestedWork& w : loops.in.nest.works) {
    if (!is_read_in_place(loops, w)) continue;
    const TileRows r = rows_of(loops, w, t);
    sum += r.rows * std::max(r.run, double(general_costs().memory.line_bytes)) * UsedElements(loops, w, t).in_l1();
  }
  return sum;
}

}  // namespace

double panel_cycles(const PlannedLoops& loops) {
  double sum = 0;
  if (!loops.plan.operands.panels()) return sum;
  for (const NestedWork& w : loops.in.nest.works)
    if (loops.is_staged(w) && !loops.is_windowed(w)) sum += panel_cycles(loops, w);
  return sum;
}

double panel_cycles(const PlannedLoops& loops, const NestedWork& w) {
  const CpuNest& in = loops.in;
  double elements = 1, vectors = 1;
  for (size_t i = 0; i < in.axes(); ++i)
    if (has_axis(w.depends, int(i))) elements *= double(in.axis(int(i)).size), vectors /= double(loops.plan.lanes.along(int(i)));
  Lanes moving;
  for (const Lane& l : loops.plan.lanes)
    if (has_axis(w.depends, l.axis)) moving.axes.push_back(l);
  const double bytes = elements * double(itemsize(w.node.dtype()));
  return elements * (2 * share_as_it_lies(in, w, moving) + 8 * vectors) +
         (bytes > double(in.target.l2_bytes) ? bytes / fill_rate(loops, w, bytes) : 0);
}

double panel_line_cycles(const PlannedLoops& loops, const Tile& t) {
  const CpuNest& in = loops.in;
  if (!loops.plan.operands.panels()) return 0;
  double sum = 0;
  for (const NestedWork& w : in.nest.works) {
    if (!loops.is_staged(w) || loops.is_windowed(w)) continue;
    const double item = double(itemsize(w.node.dtype()));
    double bytes = item, run = item;
    for (size_t i = 0; i < in.axes(); ++i) {
      if (!has_axis(w.depends, int(i))) continue;
      bytes *= double(in.axis(int(i)).size);
      if (std::abs(w.strides[i]) == 1) run *= of_tile(loops, int(i), t);
    }
    if (bytes > double(in.target.l2_bytes) && !is_far(in, bytes))
      sum += bytes / in.rates.l3 * (double(general_costs().memory.line_bytes) - item) / run;
  }
  return sum;
}

double refill_cycles(const PlannedLoops& loops, const Tile& t, int axis) {
  const auto is_inside = [&](int of) { return std::ranges::find(loops.inside_out, axis) < std::ranges::find(loops.inside_out, of); };
  double sum = 0;
  for (const NestedWork& w : loops.in.nest.works) {
    if (!w.is_access || has_axis(w.depends, axis)) continue;
    if (loops.plan.blocks.axes && loops.in.is_reduced_load(w) && !loops.is_staged(w) && is_far(loops.in, bytes_of(loops.in, w)))
      sum += bytes_of(loops.in, w) / loops.in.rates.memory;
    if (!loops.is_windowed(w)) {
      sum += loops.is_staged(w) && !has_axis(loops.resident_axes, axis) ? panel_cycles(loops, w) : 0;
    } else if (const WindowTile tile = window_tile(loops, w, t); is_inside(tile.axis)) {
      sum += tile.cycles;
    }
  }
  return sum;
}

double first_loads(const PlannedLoops& loops, const Tile& t) {
  const CpuNest& in = loops.in;
  if (in.nest.total_cost < worth_tiling) return 0;
  const MemoryCosts& costs = general_costs().memory;
  double sum = 0;
  for (const NestedWork& w : in.nest.works) {
    if (!is_read_in_place(loops, w)) continue;
    const TileRows r = rows_of(loops, w, t);
    if (!is_far(in, r.bytes) || r.run >= costs.long_run) continue;
    const double cycles = r.bytes / far_rate(in, r.bytes, r.run, std::max(r.rows, costs.streams + 1));
    // Partial results of each copy are streams, too.
    const double streams = r.rows + (loops.plan.blocks.axes ? double(t.copies()) : 0);
    sum += streams > costs.streams ? cycles : cycles * evicted_from_l1(in.target, bytes_in_l1(loops, t));
  }
  return sum;
}

uint64_t far_axes(const PlannedLoops& loops) {
  uint64_t axes = 0;
  for (const NestedWork& w : loops.in.nest.works)
    if (loops.in.is_reduced_load(w) && is_far(loops.in, bytes_of(loops.in, w))) axes |= w.depends;
  return axes;
}

int64_t chunks_of_long_runs(const PlannedLoops& loops, int axis, int threads) {
  int64_t most = loops.in.axis(axis).size;
  const CacheBlocks& blocks = loops.plan.blocks;
  if (blocks.block == 0 || double(blocks.block) > general_costs().memory.streams) return most;
  const int64_t page = general_costs().memory.page_bytes, least = std::max(2, threads);
  for (const NestedWork& w : loops.in.nest.works)
    if (is_far_row(loops, w, axis))
      most = std::min(most, std::max(least, loops.in.axis(axis).size * int64_t(itemsize(w.node.dtype())) / page));
  return most;
}

double short_run_cycles(const PlannedLoops& loops, int axis, int64_t chunks) {
  double sum = 0;
  if (chunks > chunks_of_long_runs(loops, axis))
    for (const NestedWork& w : loops.in.nest.works)
      if (is_far_row(loops, w, axis)) sum += bytes_of(loops.in, w) / loops.in.rates.short_runs;
  return sum;
}

double partial_result_cycles(const PlannedLoops& loops) {
  const CpuNest& in = loops.in;
  if (!loops.plan.blocks.axes) return 0;
  double vectors = 2;
  for (size_t i = 0; i < in.axes(); ++i)
    vectors *= in.axis(int(i)).is_reduce ? double(loops.trips_around(int(i)))
                                         : double(in.axis(int(i)).size) / double(loops.plan.lanes.along(int(i)));
  return vectors;
}

double resident_cycles(const PlannedLoops& loops, const Tile& t) {
  const CpuNest& in = loops.in;
  if (!loops.plan.operands.resident) return 0;
  double tile = 0, loaded = 0;
  for (const NestedWork& w : in.nest.works) {
    if (!loops.is_resident(w)) continue;
    double loads = w.trips;
    for (size_t i = 0; i < in.axes(); ++i)
      if (has_axis(w.inside & ~w.depends, int(i))) loads /= double(loops.step_of(int(i), t));
    const double bytes = double(loops.item_bytes(w)) * (loops.is_staged(w) ? 1 : lines_of_runs(loops, w, t));
    tile += elements_of_tile(loops, w, t) * bytes * (loops.is_staged(w) ? 1 : UsedElements(loops, w, t).in_l1());
    loaded += loads * bytes;
  }
  const double far = evicted_from_l1(in.target, tile);
  if (far == 0) return 0;
  // Other data that passes through the second cache evicts a part of a large tile.
  const double own = l2_share * double(in.target.l2_bytes);
  const double evicted = std::clamp((tile - own) / (double(in.target.l2_bytes) - own), 0.0, 1.0);
  return loaded * far * ((1 - evicted) / in.rates.l2 + evicted / in.rates.l3);
}

double streamed_cycles(const PlannedLoops& loops, const Tile& t) {
  const CpuNest& in = loops.in;
  if (in.nest.total_cost < worth_tiling) return 0;
  double sum = 0;
  for (const NestedWork& w : in.nest.works) {
    if (!in.is_reduced_load(w) || loops.is_windowed(w) || loops.is_resident(w)) continue;
    const double each = double(itemsize(w.node.dtype())) * lines_of_runs(loops, w, t);
    double times = 1;
    UsedElements used(loops, w, t);
    for (int i : loops.inside_out) {
      const double left =
          loops.is_around(i) ? double(loops.trips_around(i)) : std::ceil(double(in.axis(i).size) / double(loops.step_of(i, t)));
      if (has_axis(w.depends, i))
        used.grow(i, left);
      else if (left > 1)
        times *= 1 + (left - 1) * evicted_from_l1(in.target, each * used.count() * used.in_l1());
    }
    if (times > 1) sum += each * used.count() * times / in.rates.l2;
  }
  return sum;
}

double traffic_cycles(const PlannedLoops& loops, const Tile& t) {
  const CpuNest& in = loops.in;
  if (in.nest.total_cost < worth_tiling || in.target.l2_bytes == 0) return 0;
  double sum = 0;
  for (const NestedWork& w : in.nest.works) {
    if (!in.is_reduced_load(w) || loops.is_windowed(w)) continue;
    double times = 1, rate = in.rates.l3;
    const auto size = [&](int i) { return double(in.axis(i).size); };
    const auto step = [&](int i) { return double(loops.step_of(i, t)); };
    UsedElements used(loops, w, t);
    const auto bytes = [&] { return double(itemsize(w.node.dtype())) * used.count(); };
    for (int i : loops.inside_out) {
      const double left = loops.is_around(i) ? double(loops.trips_around(i)) : std::max(1.0, size(i) / step(i));
      if (has_axis(w.depends, i)) {
        used.grow(i, left);
      } else if (left > 1 && bytes() * (loops.is_staged(w) ? 1 : used.in_l2()) > double(in.target.l2_bytes)) {
        times *= left;
        rate = bytes_a_cycle(in, bytes());
      }
    }
    sum += bytes() * (times - 1) / rate;
  }
  return sum;
}

double partial_line_cycles(const PlannedLoops& loops, const Tile& t) {
  const CpuNest& in = loops.in;
  if (in.nest.reduces == 0 || in.nest.total_cost < worth_tiling) return 0;
  const double line_bytes = double(general_costs().memory.line_bytes);
  double sum = 0;
  for (const NestedWork& w : in.nest.works) {
    if (!w.is_access || (w.inside & in.reduce_axes)) continue;
    double bytes = double(in.nest.item_bytes), piece = line_bytes;
    for (size_t i = 0; i < in.axes(); ++i) {
      if (has_axis(w.depends, int(i))) bytes *= double(in.axis(int(i)).size);
      if (std::abs(w.strides[i]) == 1) piece = std::max(piece, double(loops.step_of(int(i), t)) * double(in.nest.item_bytes));
    }
    if (bytes > double(in.target.l2_bytes)) sum += bytes / bytes_a_cycle(in, bytes) * line_bytes / piece;
  }
  return sum;
}

double store_stream_cycles(const PlannedLoops& loops, const Tile& t) {
  const CpuNest& in = loops.in;
  if (in.nest.total_cost < worth_tiling || !in.uses_once) return 0;
  const MemoryCosts& costs = general_costs().memory;
  double sum = 0;
  for (const NestedWork& w : in.nest.works) {
    if (!w.node.is(Op::STORE)) continue;
    double bytes = double(in.nest.item_bytes);
    for (size_t i = 0; i < in.axes(); ++i)
      if (has_axis(w.depends, int(i))) bytes *= double(in.axis(int(i)).size);
    if (bytes <= double(in.target.l2_bytes)) continue;
    const double cycles = bytes > double(in.target.l3_bytes) / 2 ? costs.stream_store : costs.stream_store / 2;
    for (int i = 0; i < 2; ++i)
      if (has_axis(w.depends & ~in.nest.chosen, t.axis[i]) && t.count[i] > 1 &&
          std::abs(w.strides[size_t(t.axis[i])]) * in.nest.item_bytes > costs.stream_bytes)
        sum += cycles * w.trips * share_of(loops, w, loops.plan.lanes);
  }
  return sum;
}

}  // namespace tinygrad::codegen
