#pragma once
/// What a choice of vector axes, register tile and staged operands costs on a CPU: a small model of the innermost loops and the caches. All
/// costs are in cycles of a core that starts two vector operations a cycle.

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "codegen/opt/nest.h"
#include "target/target.h"

namespace tinygrad::codegen {

/// A vector axis and its number of lanes.
struct Lane {
  int axis = -1;  ///< place in the nest; -1: none
  int64_t lanes = 1;
};
/// A tensor core in the place of vectors: along the columns of the result, and of so many terms of a sum at once.
struct CoreUse {
  int32_t number = 0;
  Lane n, k;
  UOps casts;  ///< that it does without
};
struct Lanes {
  std::vector<Lane> axes = {};
  const CoreUse* core = nullptr;

  auto begin() const { return axes.begin(); }
  auto end() const { return axes.end(); }
  const Lane& operator[](size_t i) const { return axes[i]; }
  size_t size() const { return axes.size(); }
  bool empty() const { return axes.empty(); }
};

/// Copies of output axes: at most two are tiled.
struct Tile {
  int axis[2] = {-1, -1};
  int64_t count[2] = {1, 1};
  int64_t copies() const { return count[0] * count[1]; }
};

inline constexpr double worth_tiling = 32768;        ///< cycles of a kernel: a copy of an operand, blocks that overlap, a look at caches
inline constexpr int64_t line_bytes = 64;            ///< of a cache
inline constexpr int64_t most_refills = 16;          ///< chunks that each fill a tile anew
inline constexpr double independent_operations = 8;  ///< in flight at once: latency 4, two a cycle
inline constexpr int64_t most_accumulators = 8;      ///< of a long reduction whose steps are written out

/// Works that cost alike: operations in the same loops are one part, accesses and REDUCEs one each. A tile is weighed in as many steps as
/// there are parts, so what a kernel computes may be long.
struct WorkPart {
  const NestedWork* work;  ///< the first of them
  double cost = 0;         ///< of all together, once
  int64_t count = 0;
  int64_t beside = 0;     ///< of a REDUCE: those in its loops, with itself
  int innermost = -1;     ///< the innermost loop around it
  bool is_close = false;  ///< an access that moves by an element at most from step to step of that loop
};

/// Accumulators that are in the same loops of reductions and follow the same axes.
struct ReducePart {
  uint64_t loops = 0, depends = 0;
  int64_t count = 0, carried = 0;  ///< REDUCEs, and what they carry besides
};

/// The choice so far, and its costs.
class CpuCost {
 protected:
  CpuCost(const Nest& nest, const Target& target);

  static bool has(uint64_t bits, int axis);
  /// An access to what is kept near, and one to a copy of it.
  bool is_near(const NestedWork& w) const;
  bool is_staged(const NestedWork& w) const { return (packed_ && is_near(w)) || is_windowed(w); }
  bool is_windowed(const NestedWork& w) const { return (w.argument & windows_) != 0; }
  /// A part of what a tile is filled with, apart from the access that stands for reading it.
  bool is_in_fill(const NestedWork& w) const {
    return ((w.computed & computed_) && !is_windowed(w)) || (w.gates && !(w.gates & ~((packed_ ? near_ : 0) | windows_)));
  }
  /// A LOAD inside of a reduction.
  bool is_reduced(const NestedWork& w) const;
  /// The output axes along which it is loaded again.
  uint64_t reuse_axes(const NestedWork& w) const;
  /// How many steps of each of the loops may be written out, at most so many: a number that divides all, since masks cost more than that
  /// saves.
  int64_t most_steps(std::span<const int> axes, int64_t most) const;
  /// Steps of the innermost loop of a REDUCE that are written out besides the copies of the tile.
  int64_t steps_at_once(const NestedWork& reduce, const Tile& t) const;
  uint64_t reduce_axes() const { return reduce_axes_; }
  /// The axes that what is kept near depends on.
  uint64_t near_axes() const;
  /// Of the results of a reduction whose outer loops go around output loops: read and written in each of their iterations.
  double results_cost() const;
  int64_t results_bytes() const;
  /// Each element is loaded as it lies, from where it is, and stored once.
  double fill_cost() const;
  double fill_cost(const NestedWork& w) const;
  /// A copy of the window of an argument that some of the innermost loops over outputs move in, or a tile of what is computed of it.
  struct Window {
    int axis = -1;  ///< of the loop that it is copied in
    double cycles = 0;
    double bytes = 0;
  };
  /// The one that costs least.
  Window window_of(const NestedWork& w) const;
  double windows_cost() const;
  double windows_bytes() const;
  /// What fills take that chunks of this axis do again: of what is computed outside of it, and where there are many chunks, of any tile
  /// that does not move with it. A few copies hide behind what they are made for.
  double fills_again(int axis, int64_t chunks) const;
  /// True if what the tile needs of an argument while it is near lies together, in some order.
  bool is_dense(const NestedWork& w, const Tile& t) const;
  /// True if loops over outputs and loops of a reduction move the load along the same way.
  bool has_window(const NestedWork& w) const;
  /// Iterations of a reduced axis inside of output loops, with the masked end of its last vector.
  int64_t whole_vectors(int axis) const;
  /// Of the tiles of what is loaded of arguments.
  int64_t tile_bytes(uint64_t arguments) const;
  int64_t copies_of(int axis) const;
  int64_t lanes_of(int axis) const;
  /// Of the nest, with vectors.
  double work_with(const Lanes& lanes) const;
  /// How many times more is computed than must be, because what is done at once ends a loop that masks bound (bound_loops.h) together.
  double idle_work(const NestedWork& w, const Lanes& lanes, const Tile& t) const;
  /// How much of a piece of work is left with lanes.
  double share(const NestedWork& w, const Lanes& lanes) const;
  bool fits(const Tile& t) const;
  /// Registers of the partial results of REDUCEs. What does not change along a tiled axis is shared by its copies; of what a general
  /// REDUCE carries, one value follows the axis: the others are its maximum, its count or the like.
  static int64_t accumulators(const ReducePart& r, const Tile& t);
  /// The most at once: results of a loop that is over wait in memory while another runs.
  int64_t accumulators(const Tile& t) const;
  static ReducePart reduce_part(const NestedWork& w, uint64_t loops);
  /// True if one of the tile's copies uses it: it does not depend on the axis otherwise.
  bool is_known(const NestedWork& w, const Tile& t, int i) const;
  double tile_cost(const Tile& t) const;
  int64_t registers() const;
  /// Of a value with all its lanes.
  int64_t registers_each() const;
  /// The loops over outputs; those that what is kept near moves with are outside, and between the two come outer loops of a reduction.
  std::vector<int> loops_inside_out() const;
  /// Iterations of a reduced axis around output loops, and inside of them.
  int64_t outer_trips(int axis) const;
  int64_t inner_size(int axis) const { return nest_.axes[size_t(axis)].size / outer_trips(axis); }
  bool is_joined() const;
  /// A loop inside of the joined one.
  bool is_written_out(int axis) const;

  const Nest& nest_;
  const Target& target_;
  const uint64_t reduce_axes_;
  const std::vector<WorkPart> parts_;
  const std::vector<ReducePart> reduces_;
  const bool uses_once_;       ///< each element that reductions load is used once
  std::vector<int64_t> left_;  ///< iterations of each axis that are still loops
  Lanes lanes_;
  Tile tile_;
  uint64_t near_ = 0;        ///< the arguments of which a tile is used again and again while it is in near memory, as bits
  bool packed_ = true;       ///< such tiles are copied as they will be needed
  uint64_t windows_ = 0;     ///< the arguments of which windows are copied
  uint64_t computed_ = 0;    ///< those of them of which it is not the elements, but what is computed of them
  uint64_t outer_ = 0;       ///< reduced axes whose loops go around those output loops that the near arguments do not move with
  int64_t block_ = 0;        ///< iterations of the last of those that stay inside; 0: none
  int64_t outer_steps_ = 1;  ///< of the joined loop at a time, where it goes around output loops

 private:
  bool uses_once() const;
  /// The part of the iterations of a bounded loop that is left.
  double kept(const NestAxis& loop, int64_t at_once) const;
  double joins(const Lanes& lanes) const;
  /// Those of a tile's copies share shuffles.
  double joins_together(const Tile& t) const;
  /// Joining the lanes of a reduction takes a shuffle and an operation for each half.
  double join_cost(const Lane& l) const;
  double share_as_it_lies(const NestedWork& w, const Lanes& lanes) const;
  /// True if neighbours along the axis are stored to a cache line each, which has been driven out of the first cache when it is stored to
  /// again.
  bool stores_to_lines(const NestedWork& w, const NestAxis& along) const;
  /// Lanes are every second to fourth element, so that what lies between them is accessed with them (expand/vectorize_lanes.h).
  static bool is_every_few(const NestedWork& w, const Lane& l);
  /// The part of the cost of a STORE of lanes that are apart that is left if the tile's copies fill what lies between them.
  double share_of_run(const NestedWork& w, const Tile& t) const;
  /// A gate is worked out along with an access; one that lanes have each their own of is a mask.
  double gate_cost(const NestedWork& w, const Lanes& lanes) const;
  /// That one step of all copies shares: those along a vector axis; what is the same in all lanes is loaded when it is needed.
  int64_t vectors_of_step(const Tile& t) const;
  int64_t widest() const;
  /// Cycles to load again what the loops around a use of it have driven out of the second cache meanwhile.
  double traffic(const Tile& t) const;
  /// Cycles that near tiles take to come from the second cache, where the first does not hold them.
  double near_traffic(const Tile& t) const;
  /// Cycles in which results, and what is joined with them, wait for far memory, as the tile takes it in short pieces.
  double far_pieces(const Tile& t) const;
  /// Cycles that stores to far memory take longer because copies along rows make many runs of them at once.
  double far_streams(const Tile& t) const;
  /// Elements of a tile for the load, which loops over so many iterations of each axis fill.
  double reached(const NestedWork& w, std::span<const double> iterations) const;
  /// Combinations of so many iterations of the axes that the load depends on.
  double together(const NestedWork& w, std::span<const double> iterations) const;
  /// Cycles to compute the value of an element, where a tile has so many iterations of each axis.
  double computing(const NestedWork& load, std::span<const double> iterations) const;
  /// Loops over an axis with a masked end, or in blocks, are in no window with others.
  bool is_split_evenly(int axis) const { return nest_.axes[size_t(axis)].size % (lanes_of(axis) * copies_of(axis)) == 0; }
  /// Elements of an axis in a step.
  double held(int axis, const Tile& t) const;
  /// Of so much memory, which the second cache does not hold.
  double bytes_a_cycle(double of) const;
  /// How many times more is computed than there is, because of the masked ends.
  double masked_work(const NestedWork& w, const Tile& t) const;
  /// An access that moves to another cache line at each step of the innermost loop waits for it; neighbouring vectors share the line.
  double line_cost(const WorkPart& p, const Tile& t) const;
  /// How often the loops around a load from near memory make it again.
  double uses(const NestedWork& w, const Tile& t) const;
  double innermost_trips() const;
  /// Of compiling what the copies do not share.
  double code_cost(const Tile& t) const;
  /// Steps of accumulators that are in no register load and store them.
  double spills(const NestedWork& w, const Tile& t) const;
  /// What does not change in the joined loop is loaded before it, if the loops inside that it changes with are written out.
  bool stays(const NestedWork& w) const;
  /// It is loaded as it lies once, and as whole vectors from near memory each time.
  double share_of_kept(const NestedWork& w) const;

  static uint64_t reduce_axes_of(const Nest& nest);
  std::vector<WorkPart> work_parts() const;
  std::vector<ReducePart> reduce_parts() const;

  mutable std::map<std::pair<const NestAxis*, int64_t>, double> kept_;  ///< what was asked for
  mutable uint64_t near_axes_ = 0, near_axes_of_ = 0;                   ///< what was asked for last, and of which arguments
};

}  // namespace tinygrad::codegen
