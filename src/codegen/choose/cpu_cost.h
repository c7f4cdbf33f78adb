#pragma once
/// What a choice of vector axes, register tile and staged operands costs on a CPU: a small model of the innermost loops and the caches. All
/// costs are in cycles of a core that starts two vector operations a cycle.

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "codegen/choose/nest.h"
#include "target/target.h"

namespace tinygrad::codegen {

/// A vector axis and its number of lanes.
struct Lane {
  int axis = -1;  ///< place in the nest; -1: none
  int64_t lanes = 1;
};
/// A tensor core that is used instead of vectors: `n` are its columns of the result, `k` the terms of a sum that it adds at once.
struct CoreUse {
  int32_t number = 0;
  Lane n, k;
  UOps casts;  ///< conversions that its instruction includes
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

/// The register tile: so many neighbouring elements along each of at most two output axes are computed side by side. A copy is the code
/// of one of them.
struct Tile {
  int axis[2] = {-1, -1};
  int64_t count[2] = {1, 1};
  int64_t copies() const { return count[0] * count[1]; }
};

inline constexpr double worth_tiling = 32768;        ///< cycles of a kernel from which staging, blocks and cache traffic are weighed
inline constexpr int64_t line_bytes = 64;            ///< of a cache
inline constexpr int64_t most_refills = 16;          ///< chunks of threads that may each fill the same tile for themselves
inline constexpr double independent_operations = 8;  ///< operations in flight that hide the latency: 4 cycles, two started in each
inline constexpr int64_t most_accumulators = 8;      ///< accumulators of one result, where steps of a long reduction are written out

/// Works of a nest that cost alike: operations in the same loops are one part, each access and each REDUCE is a part of its own. The cost
/// of a tile is a sum over parts, so a kernel may have many operations.
struct WorkPart {
  const NestedWork* work;  ///< the first one
  double cost = 0;         ///< cycles of all of them, done once
  int64_t count = 0;
  int64_t beside = 0;     ///< for a REDUCE: how many REDUCEs run in its loops, itself included
  int innermost = -1;     ///< the innermost loop around it
  bool is_close = false;  ///< an access that moves by an element at most from step to step of that loop
};

/// REDUCEs that run in the same loops of reductions and depend on the same axes.
struct ReducePart {
  uint64_t loops = 0, depends = 0;
  int64_t count = 0, carried = 0;  ///< how many, and the values that general REDUCEs carry besides their first
};

/// The choice so far, and the terms of its cost. A staged argument is one of which a panel is copied in front of the loops that use it
/// again; a near one is used again while it stays in the second cache, copied or not.
class CpuCost {
 protected:
  CpuCost(const Nest& nest, const Target& target);

  static bool has(uint64_t bits, int axis);
  /// Whether an access is of a near argument, and whether it reads a panel.
  bool is_near(const NestedWork& w) const;
  bool is_staged(const NestedWork& w) const { return (packed_ && is_near(w)) || is_windowed(w); }
  bool is_windowed(const NestedWork& w) const { return (w.argument & windows_) != 0; }
  /// Whether a work runs only where a tile is filled. The access that reads the tile stands for the rest of it.
  bool is_in_fill(const NestedWork& w) const {
    return ((w.computed & computed_) && !is_windowed(w)) || (w.gates && !(w.gates & ~((packed_ ? near_ : 0) | windows_)));
  }
  /// Whether a work is a LOAD inside of a reduction.
  bool is_reduced(const NestedWork& w) const;
  /// The output axes along which the same element is loaded again.
  uint64_t reuse_axes(const NestedWork& w) const;
  /// How many steps of each of these loops to write out, at most `most`. The number divides the sizes of all, since masks would cost more
  /// than writing out saves.
  int64_t most_steps(std::span<const int> axes, int64_t most) const;
  /// Steps of the innermost loop of a REDUCE that are written out, so that its accumulators are independent.
  int64_t steps_at_once(const NestedWork& reduce, const Tile& t) const;
  uint64_t reduce_axes() const { return reduce_axes_; }
  /// The axes that near arguments depend on.
  uint64_t near_axes() const;
  /// Cycles, and bytes, of partial results in memory: loops of a reduction around output loops read and write them in each iteration.
  double results_cost() const;
  int64_t results_bytes() const;
  /// Cycles to fill the panels: each element is loaded from where it lies and stored once.
  double fill_cost() const;
  double fill_cost(const NestedWork& w) const;
  /// A tile of the window of an argument in which the innermost output loops move, or of what is computed of the window's elements.
  struct Window {
    int axis = -1;  ///< the loop in which the tile is filled
    double cycles = 0;
    double bytes = 0;
  };
  /// The cheapest one.
  Window window_of(const NestedWork& w) const;
  double windows_cost() const;
  double windows_bytes() const;
  /// Cycles of fills that are repeated if threads share out this axis in `chunks`: each chunk fills the tiles that do not move with it.
  /// Tiles of computed values count from the second chunk on, others from `most_refills` on, as few copies hide behind the work that reads
  /// them.
  double fills_again(int axis, int64_t chunks) const;
  /// True if the elements of a near argument that one register tile uses are contiguous in memory, in some order.
  bool is_dense(const NestedWork& w, const Tile& t) const;
  /// True if an output loop and a loop of a reduction move the load along the same axis of memory, as in a convolution.
  bool has_window(const NestedWork& w) const;
  /// Iterations of a reduced axis inside of output loops, rounded up to whole vectors.
  int64_t whole_vectors(int axis) const;
  /// Bytes of the tiles of these arguments, as their loads in the nest need them.
  int64_t tile_bytes(uint64_t arguments) const;
  int64_t copies_of(int axis) const;
  int64_t lanes_of(int axis) const;
  /// Cycles of the whole nest with these vectors and no register tile.
  double work_with(const Lanes& lanes) const;
  /// The factor of work that masks throw away in a bounded loop (bound_loops.h): elements that are computed side by side leave it together,
  /// with the last of them.
  double idle_work(const NestedWork& w, const Lanes& lanes, const Tile& t) const;
  /// The cost of a work with vectors, as a part of its cost with scalars.
  double share(const NestedWork& w, const Lanes& lanes) const;
  bool fits(const Tile& t) const;
  /// Accumulators of these REDUCEs, in vectors. Copies along an axis that a result does not depend on share it. Of the values that a
  /// general REDUCE carries only one depends on the tiled axis; the others are a maximum, a count or the like.
  static int64_t accumulators(const ReducePart& r, const Tile& t);
  /// The most that are alive at once. Results of a loop that has ended may be spilled while another runs.
  int64_t accumulators(const Tile& t) const;
  static ReducePart reduce_part(const NestedWork& w, uint64_t loops);
  /// True if each copy along the tile's axis `i` only chooses among values, and the tile has all of the axis: a value is computed once.
  bool is_known(const NestedWork& w, const Tile& t, int i) const;
  double tile_cost(const Tile& t) const;
  int64_t registers() const;
  /// Registers that one vector value takes.
  int64_t registers_each() const;
  /// The loops around the register tile, from the inside out: output loops along which the near tiles are used again, then loops of a
  /// reduction that go around those, then output loops that move the near tiles.
  std::vector<int> loops_inside_out() const;
  /// A reduced axis that is blocked has `outer_trips` iterations around output loops, and `inner_size` inside of them.
  int64_t outer_trips(int axis) const;
  int64_t inner_size(int axis) const { return nest_.axes[size_t(axis)].size / outer_trips(axis); }
  bool is_joined() const;
  /// Whether a loop inside of the joined one is short enough to be written out.
  bool is_written_out(int axis) const;

  const Nest& nest_;
  const Target& target_;
  const uint64_t reduce_axes_;
  const std::vector<WorkPart> parts_;
  const std::vector<ReducePart> reduces_;
  const bool uses_once_;       ///< no element that reductions load is used twice
  std::vector<int64_t> left_;  ///< iterations of each axis that opts so far leave as a loop
  Lanes lanes_;
  Tile tile_;
  uint64_t near_ = 0;        ///< the near arguments, as bits
  bool packed_ = true;       ///< they are packed into panels, in the order in which they will be read
  uint64_t windows_ = 0;     ///< the arguments of which windows are copied
  uint64_t computed_ = 0;    ///< those among `windows_` whose tiles hold values that are computed of the elements
  uint64_t outer_ = 0;       ///< reduced axes whose loops go around the output loops that use a near tile again
  int64_t block_ = 0;        ///< iterations of the innermost axis of `outer_` that stay inside of the output loops; 0: none
  int64_t outer_steps_ = 1;  ///< steps of the joined loop that are taken at once where it goes around output loops

 private:
  bool uses_once() const;
  /// The part of a bounded loop's iterations that its masks leave, if `at_once` neighbouring results leave the loop together.
  double kept(const NestAxis& loop, int64_t at_once) const;
  double joins(const Lanes& lanes) const;
  /// Cycles to join lanes at the end of reductions. The copies of a tile are joined together, so that they share shuffles.
  double joins_together(const Tile& t) const;
  /// Joining the lanes of a reduction takes a shuffle and an operation for each half.
  double join_cost(const Lane& l) const;
  double share_as_it_lies(const NestedWork& w, const Lanes& lanes) const;
  /// True if each lane along the axis is stored to a cache line of its own, and the first cache has evicted the line before the next
  /// element of it is stored.
  bool stores_to_lines(const NestedWork& w, const NestAxis& along) const;
  /// True if lanes are every second to fourth element: one access then covers the whole run (late/vectorize_lanes.h).
  static bool is_every_few(const NestedWork& w, const Lane& l);
  /// The factor of a strided STORE's cost if the tile's copies store what lies between its lanes, so that whole runs are written.
  double share_of_run(const NestedWork& w, const Tile& t) const;
  /// Cycles of an access's gate. A gate that differs between lanes is a mask.
  double gate_cost(const NestedWork& w, const Lanes& lanes) const;
  /// Vectors that stay in registers while one step of all copies runs. Scalars that are broadcast are loaded where they are used.
  int64_t vectors_of_step(const Tile& t) const;
  int64_t widest() const;
  /// Cycles to load again what the second cache has evicted between two uses.
  double traffic(const Tile& t) const;
  /// Cycles to read near tiles that do not fit the first cache from the second one.
  double near_traffic(const Tile& t) const;
  /// Cycles that results, and what is read beside them, wait for memory because the tile accesses it in pieces shorter than a line.
  double far_pieces(const Tile& t) const;
  /// Cycles that stores of large results lose because copies of several rows write as many streams at once.
  double far_streams(const Tile& t) const;
  /// Elements of a load's tile that is filled by `iterations` of each axis, overlaps of a window counted once.
  double reached(const NestedWork& w, std::span<const double> iterations) const;
  /// Elements of a load's tile where windows do not overlap: the product of the iterations that the load depends on.
  double together(const NestedWork& w, std::span<const double> iterations) const;
  /// Cycles to compute one element of a tile of computed values that has `iterations` of each axis.
  double computing(const NestedWork& load, std::span<const double> iterations) const;
  /// False for an axis with a masked end or with blocks that overlap: its loops share no window with others.
  bool is_split_evenly(int axis) const { return nest_.axes[size_t(axis)].size % (lanes_of(axis) * copies_of(axis)) == 0; }
  /// Elements of an axis that one step of the register tile takes.
  double held(int axis, const Tile& t) const;
  /// The rate at which an array of `of` bytes is read that the second cache does not hold.
  double bytes_a_cycle(double of) const;
  /// The factor of work that the masked ends of tiles and vectors throw away.
  double masked_work(const NestedWork& w, const Tile& t) const;
  /// The factor of an access's cost for waiting on cache lines: one that moves to another line at each step of the innermost loop waits,
  /// neighbouring vectors share a line.
  double line_cost(const WorkPart& p, const Tile& t) const;
  /// How often the loops around a near tile read an element of it.
  double uses(const NestedWork& w, const Tile& t) const;
  double innermost_trips() const;
  /// Cycles to compile the code of copies that they do not share, spread over the runs of a kernel.
  double code_cost(const Tile& t) const;
  /// Cycles to load and store accumulators that registers do not hold, at each step.
  double spills(const NestedWork& w, const Tile& t) const;
  /// True for a load that does not change in the joined loop and stands in front of it, as the loops inside that change it are written out.
  bool stays(const NestedWork& w) const;
  /// The cost of such a load: once from where it lies, then whole vectors from the stack at each step.
  double share_of_kept(const NestedWork& w) const;

  static uint64_t reduce_axes_of(const Nest& nest);
  std::vector<WorkPart> work_parts() const;
  std::vector<ReducePart> reduce_parts() const;

  mutable std::map<std::pair<const NestAxis*, int64_t>, double> kept_;  ///< answers of kept()
  mutable uint64_t near_axes_ = 0, near_axes_of_ = 0;                   ///< the last answer of near_axes(), and for which arguments
};

}  // namespace tinygrad::codegen
