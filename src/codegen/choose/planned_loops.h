#pragma once
/// The loops of a nest under a plan, its register tile aside: what is the same for all of the tiles that a search tries.

#include <span>
#include <vector>

#include "codegen/choose/cpu_nest.h"

namespace tinygrad::codegen {

struct PlannedLoops {
  PlannedLoops(const CpuNest& nest, const CpuPlan& plan);

  const CpuNest& in;
  const CpuPlan& plan;     ///< lives longer. Its tile does not count, but in a transpose
  uint64_t resident_axes;  ///< the axes that resident arguments depend on: their loops move the tiles of these, unless those are whole
  /// Iterations of each axis that vectors leave as a loop.
  std::vector<int64_t> left;
  /// The loops around the register tile, from the inside out: output loops along which the resident tiles are used again, then loops of
  /// the reduction that go around those, then output loops that move the resident tiles.
  std::vector<int> inside_out;

  /// Whether a work is an access of a resident argument.
  bool is_resident(const NestedWork& w) const;
  bool is_windowed(const NestedWork& w) const { return (w.argument & plan.operands.windows) != 0; }
  /// Whether an access reads a copy: a panel, or a tile of a window.
  bool is_staged(const NestedWork& w) const { return (plan.operands.packed && is_resident(w)) || is_windowed(w); }
  /// Whether a work runs only where a tile is filled. The access that reads the tile stands for the rest of it.
  bool is_in_fill(const NestedWork& w) const;
  /// The panels that hold converted elements, of arguments that are only converted. Tensor cores convert by themselves.
  uint64_t converted_panels() const { return plan.lanes.core ? 0 : plan.operands.panels() & ~plan.operands.windows; }
  bool is_converted(const NestedWork& w) const;
  /// Bytes of an element as the innermost loops load it.
  int64_t item_bytes(const NestedWork& w) const;
  /// Iterations that a reduced axis in blocks has around the output loops, and inside of them; 1 and all where it is not in blocks.
  int64_t trips_around(int axis) const;
  int64_t trips_inside(int axis) const { return in.axis(axis).size / trips_around(axis); }
  bool is_around(int axis) const { return has_axis(plan.blocks.axes, axis); }
  /// Elements of an axis that one step of the register tile takes.
  int64_t step_of(int axis, const Tile& t) const { return plan.lanes.along(axis) * t.along(axis); }
  /// Elements along an output axis that a tile of an argument has: those of such a step, or all.
  int64_t elements_along(const NestedWork& w, int axis, const Tile& t) const;
  /// Steps of the innermost loop of a REDUCE that are written out, so that its accumulators are independent.
  int64_t steps_at_once(const NestedWork& reduce, const Tile& t) const;
  /// True if the elements of a resident argument that one register tile uses are contiguous in memory, in some order.
  bool is_dense(const NestedWork& w, const Tile& t) const;
  /// True if the end of an axis may be masked: loads inside of reductions read staged tiles there, and need no mask of their own.
  bool may_mask(int axis) const;
  /// Registers that one vector value takes.
  int64_t registers_each() const;
};

/// How many steps of each of these loops to write out, at most `most`. The number divides the iterations that are left of all, since masks
/// would cost more than writing out saves.
int64_t most_steps(std::span<const int64_t> left, std::span<const int> axes, int64_t most);

/// Whether a reduced loop inside of the joined one is short enough to be written out.
bool is_written_out(const CpuNest& in, std::span<const int64_t> left, int axis);

inline constexpr int64_t most_accumulators = 8;  ///< accumulators of one result, where steps of a long reduction are written out

/// Steps of a joined reduction's inner loops that are written out, all copies together: compilers take longer the more there are.
inline constexpr int64_t most_written_out = 1024;

inline constexpr double l2_share = 0.75;  ///< the part of the second cache in which a panel stays while other data passes through

/// The factor by which so many elements of a load along each axis of the nest take more of a cache than their bytes: those that lie far
/// apart may fall into few of its sets (cache_sets.h).
double crowding_of(const CpuNest& in, const NestedWork& w, std::span<const double> counts, int64_t cache_bytes, int ways);

/// Bytes of the tiles of these arguments, as their loads in the nest need them; a few bytes more than the second cache, if it is more.
int64_t tile_bytes(const PlannedLoops& loops, const Tile& t, uint64_t arguments);
/// Bytes of partial results in memory, which loops of a reduction around output loops read and write in each iteration.
int64_t partial_result_bytes(const PlannedLoops& loops, const Tile& t);
/// Whether the tiles of the operands stay in the second cache, and a loop uses them again.
bool fits_cache(const PlannedLoops& loops, const Tile& t);
/// Whether the register tile's values fit the registers; of a joined reduction, whether its results are few enough to be spilled.
bool fits_registers(const PlannedLoops& loops, const Tile& t);
/// Accumulators that are alive at once, at most. Results of a loop that has ended may be spilled while another runs.
int64_t accumulators(const CpuNest& in, const Tile& t);

}  // namespace tinygrad::codegen
