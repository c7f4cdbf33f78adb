#pragma once
/// The search for vector axes, register tile and staged operands of a loop nest on a CPU.

#include <optional>
#include <span>

#include "codegen/choose/cpu_cost.h"

namespace tinygrad::codegen {

class CpuChoice : protected CpuCost {
 protected:
  /// `chosen` are the opts of other nests of the kernel, with which this one may share loops. `cores` are tensor cores that may be used.
  /// `bounded` says that masks will end loops of reductions early (bound_loops.h).
  CpuChoice(const Nest& nest, const Target& target, std::span<const Opt> chosen, std::vector<CoreUse> cores, bool bounded);

  /// What is chosen, and its cost.
  struct Choice {
    double cost = 0;
    Lanes lanes = {};
    Tile tile = {};
    uint64_t near = 0;
    bool packed = true;
    uint64_t windows = 0, computed = 0;
    uint64_t outer = 0;
    int64_t block = 0;
  };

  /// Sets what CpuCost holds. `one_nest`: the nest is the whole kernel. `in_place`: it stores to what it loads from.
  void choose(bool one_nest, bool in_place);
  /// Choices for a nest that is the whole kernel, the cheapest first: a few tiles for each set of vectors and staged arguments.
  std::vector<Choice> cheapest_choices(bool in_place, size_t count);
  void take(const Choice& c);
  /// The output axis whose loop is shared out among threads in so many chunks, each worth a thread's start: the outermost that is long
  /// enough; -1: none.
  struct Chunks {
    int axis = -1;
    int64_t count = 1;
  };
  Chunks chunks(std::span<const int64_t> left, int64_t wanted) const;
  /// The same among the axes that move near tiles (`with_tiles`), or among the others.
  Chunks chunks_along(std::span<const int64_t> left, int64_t wanted, bool with_tiles) const;
  /// True if there are so few chunks that an even number of threads would not end together.
  static bool leaves_threads_idle(int64_t chunks);
  int64_t wanted_chunks() const;
  bool is_taken(int axis) const { return has(taken_, axis); }
  /// True if the end of an axis may be masked: loads inside of reductions read staged tiles there, and need no mask of their own.
  bool may_mask(int axis) const;
  /// True for the axes of terms that stay in registers until the results use them, which need the same number of steps (keep_terms.h).
  bool keeps_terms(int axis) const;
  /// The output axes on which only some of the carried values depend, outermost first.
  std::vector<int> followed_axes() const;

  double cost_ = 0;          ///< cycles of what choose() weighed and took
  bool transposes_ = false;  ///< choose_transposing() took the nest: vectors along one axis, the register tile along another

 private:
  /// The loops of a long reduction that go around output loops. `block` iterations of the innermost one stay inside.
  struct Around {
    uint64_t axes = 0;
    int64_t block = 0;
  };

  void choose_near(bool one_nest, bool in_place);
  /// Which arguments are near, whether they are packed into panels, and of which arguments windows, or values computed of windows, are
  /// copied.
  struct Near {
    uint64_t arguments = 0;
    bool packed = true;
    uint64_t windows = 0, computed = 0;
  };
  std::vector<Near> near_choices() const;
  void take(const Near& n);
  uint64_t arguments_with_windows() const;
  /// Arguments of which tiles of computed values may be made. Where several arguments share such values, one stands for all.
  uint64_t computed_arguments() const;
  Choice chosen(double cost) const;
  /// The cost of what is chosen so far, fills and waiting threads included; `loops` is the cost of the loops alone.
  double in_all(double loops, int64_t wanted_chunks) const;
  /// Ever more iterations of the reduction outside of the output loops: half of the first loop, a quarter of it left inside, ..., all of
  /// it, half of the second too, ...
  std::vector<Around> outer_choices() const;
  /// Takes the nest if it stores along another axis than it loads along. `may_block` allows that elements are computed twice.
  bool choose_transposing(bool may_block);
  /// The axis along which accesses of this op are contiguous while they stride along `other`; -1: none.
  int contiguous_axis(Op op, int other) const;
  Choice choose_lanes_and_tile();
  /// The cost of the best tile for the vectors that are chosen.
  double with_lanes();
  /// Sets of arguments that REDUCEs load again along an output axis: each argument alone, and those together that move with the same output
  /// axes.
  std::vector<uint64_t> reused_arguments() const;
  /// The arguments that may not be staged.
  uint64_t fixed_arguments() const;
  /// Whether a load may be staged: the loops that move it have known sizes, and its index needs no load and no reduction.
  static bool may_stage(const NestedWork& w);
  bool is_near_enough() const;
  void choose_lanes();
  std::vector<Lanes> lane_choices() const;
  bool meet(int a, int b) const;
  bool meets_vectors(int axis) const;
  double choose_tile();
  /// Calls use(tile, its cost) for each tile that fits.
  template <class Use>
  void for_tiles(Use&& use) const;
  std::vector<Lanes> cheapest_lanes() const;
  void add_choices(const Lanes& lanes, std::vector<Choice>& to);
  std::vector<int64_t> tile_counts(int axis) const;
  void choose_together();
  void choose_outer();
  bool fits_registers(const std::vector<int>& followed) const;
  /// Vectors along an axis of rows, so that each lane carries a maximum of its own; empty if that is the axis that the results follow.
  Lanes rows() const;
  /// The arguments that are loaded in the joined loop and are the same in all its steps; no value if one of them cannot be staged.
  std::optional<uint64_t> kept_arguments() const;

  const std::vector<CoreUse> cores_;
  const bool bounded_;
  uint64_t taken_ = 0, vectors_ = 0;  ///< axes to which other nests have given opts, and lanes
  bool may_block_ = false;            ///< elements may be computed twice
};

}  // namespace tinygrad::codegen
