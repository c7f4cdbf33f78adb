#pragma once
/// The search for vector axes, register tile and staged operands of a loop nest on a CPU.

#include <optional>
#include <span>

#include "codegen/opt/cpu_cost.h"

namespace tinygrad::codegen {

class CpuChoice : protected CpuCost {
 protected:
  /// `chosen` are the opts of other nests of the kernel, with which this one may share loops.
  /// `cores` are tensor cores that may be used.
  /// `bounded`: masks will make loops of reductions shorter.
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
  /// Choices for a nest that is the whole kernel, the cheapest first; of those with the same vectors and staged arguments a few.
  std::vector<Choice> cheapest_choices(bool in_place, size_t count);
  void take(const Choice& c);
  /// The output axis whose loop is shared out among threads in so many chunks, each worth a thread's start: the outermost that is long
  /// enough; -1: none.
  struct Chunks {
    int axis = -1;
    int64_t count = 1;
  };
  Chunks chunks(std::span<const int64_t> left, int64_t wanted) const;
  /// Along an axis with which the near tiles move, or another.
  Chunks chunks_along(std::span<const int64_t> left, int64_t wanted, bool with_tiles) const;
  /// So few that those of an even number of threads do not end together.
  static bool leaves_threads_idle(int64_t chunks);
  int64_t wanted_chunks() const;
  bool is_taken(int axis) const { return has(taken_, axis); }
  /// Masks at the end of an axis are outside of reductions if what is loaded inside of them is staged.
  bool may_mask(int axis) const;
  /// True for the axes of terms that are kept for results, if they have the same steps (keep_terms.h).
  bool keeps_terms(int axis) const;
  /// The output axes that only some of what is carried follows, outermost first.
  std::vector<int> followed_axes() const;

  double cost_ = 0;          ///< of what choose() chose by its costs
  bool transposes_ = false;  ///< what choose_transposing() chose: the vectors are along one axis, the tile along another

 private:
  /// The loops of a long reduction that go around output loops, of the last of which `block` iterations stay inside.
  struct Around {
    uint64_t axes = 0;
    int64_t block = 0;
  };

  void choose_near(bool one_nest, bool in_place);
  /// Arguments to keep near, whether to copy them, those of which to copy windows, and those of these to compute with first.
  struct Near {
    uint64_t arguments = 0;
    bool packed = true;
    uint64_t windows = 0, computed = 0;
  };
  std::vector<Near> near_choices() const;
  void take(const Near& n);
  uint64_t arguments_with_windows() const;
  /// Arguments of which tiles of computed values may be made, one of those that share them.
  uint64_t computed_arguments() const;
  Choice chosen(double cost) const;
  /// The cost of what is chosen so far, where the loops alone cost so much.
  double in_all(double loops, int64_t wanted_chunks) const;
  /// More and more: half of the first loop, a quarter, ..., all of it, half of the second too, ...
  std::vector<Around> outer_choices() const;
  /// `may_block`: elements may be computed twice.
  bool choose_transposing(bool may_block);
  /// Along which an access of the kind moves to the next element, and far along the other axis; -1: none.
  int contiguous_axis(Op op, int other) const;
  Choice choose_lanes_and_tile();
  /// The cost of the best tile for the vectors that are chosen.
  double with_lanes();
  /// Arguments that are loaded for REDUCEs, and are the same along an output axis: each alone, and those together that move with the same
  /// output axes.
  std::vector<uint64_t> reused_arguments() const;
  /// Those that may not be copied.
  uint64_t fixed_arguments() const;
  /// That the loops it moves with have known sizes, and nothing else is computed to find it.
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
  /// The axis for vectors of which each lane has a maximum of its own; none if it would be that of results.
  Lanes rows() const;
  /// The arguments that are loaded in the joined loop and are the same in all its steps; no value if one of them cannot be staged.
  std::optional<uint64_t> kept_arguments() const;

  const std::vector<CoreUse> cores_;
  const bool bounded_;
  uint64_t taken_ = 0, vectors_ = 0;  ///< axes that have opts already, and lanes
  bool may_block_ = false;            ///< elements may be computed twice
};

}  // namespace tinygrad::codegen
