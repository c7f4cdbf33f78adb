#pragma once
/// What a plan for a loop nest costs on a CPU: a small model of the innermost loops, the registers and the caches. All costs are in cycles
/// of a core that starts two vector operations a cycle; they are estimates, good for telling plans of one nest apart.

#include <optional>
#include <vector>

#include "codegen/choose/planned_loops.h"

namespace tinygrad::codegen {

/// The terms, by what they model.
struct CpuCost {
  // The innermost loops.

  /// Operations and accesses, and spills of a joined reduction's accumulators: the sum over the nest's works of
  ///
  ///   cycles * trips * (its part with vectors) * (cache lines) * (masked ends) * (masked iterations) / (copies that share it) + spill
  ///
  /// A REDUCE also waits for the step before, unless enough independent accumulators (CpuNest::independent) hide the latency. access_cost.h
  /// has the parts with vectors. An accumulator that registers do not hold is stored and loaded at each step.
  double work = 0;
  double joins = 0;    ///< joining the lanes of reductions (access_cost.h)
  double loops = 0;    ///< a cycle for each iteration of the innermost loop: trips / copies
  double compile = 0;  ///< copies that share no code take time to compile: 4 cycles an operation, spread over tens of thousands of runs

  // Caches and memory (memory_cost.h, window_cost.h).

  double resident = 0;         ///< reading resident tiles from the second cache, beside the work
  double traffic = 0;          ///< loading again what the second cache has evicted
  double partial_lines = 0;    ///< pieces of far memory that are shorter than a cache line
  double store_streams = 0;    ///< several rows of large results that are written at once
  double panels = 0;           ///< filling panels
  double first_loads = 0;      ///< reading far memory that is not packed, in short runs
  double windows = 0;          ///< filling tiles of windows
  double refills = 0;          ///< filling the same tile in several threads
  double partial_results = 0;  ///< results that loops of a reduction around output loops read and write

  // Threads.

  /// The part of the time that threads wait for the last chunk of others.
  double waiting = 0;

  /// Reading resident tiles takes place beside the work, so the longer of the two counts.
  double total() const {
    const double innermost = (work > resident ? work : resident) + (traffic + partial_lines + store_streams + joins) + loops + compile;
    return (innermost + (panels + first_loads + windows + refills) + partial_results) * (1 + waiting);
  }
};

/// The cost of plans that differ in their tiles alone.
class TileCosts {
 public:
  explicit TileCosts(const PlannedLoops& loops);
  CpuCost of(const Tile& t) const;
  /// The terms that follow from the works alone. They are no more than those of the plan with this tile and any cache blocks.
  CpuCost begin(const Tile& t) const;
  /// What `begun` becomes with all of its terms, if its total is less than `limit`; what is more is often known by a few of them.
  std::optional<CpuCost> below(const Tile& t, CpuCost begun, double limit) const;

 private:
  /// What decides how an access's cost grows by waiting for cache lines.
  enum class Lines : uint8_t { any, of_window, of_resident, shared_by_copies };
  /// A work outside of fills, and its cost with the plan's vectors.
  struct Part {
    const WorkPart* part;
    double cycles, share;
    bool stays;                  ///< a load in front of the joined loop
    bool may_fill_runs = false;  ///< a strided store whose copies may store what lies between its lanes
    Lines lines = Lines::any;
    double cost = 0;  ///< cycles * share
    double line_cost = 1, vectors_a_line = 1;
    double known_masks = 1;  ///< the factor of a load's cost, and of its gate's, where it is known which lanes are masked
  };

  void note_lines(Part& p);
  double line_cost(const Part& p, const Tile& t, bool least) const;
  double work(const Tile& t, bool least) const;
  /// The terms of chunks for threads.
  void share_out(const Tile& t, CpuCost& cost) const;

  const PlannedLoops& loops_;
  const double work_;  ///< before tiles are known
  const int64_t wanted_chunks_;
  std::vector<Part> parts_;
  bool reads_unpacked_ = false;  ///< resident tiles that are no panels: how far their lines are apart depends on cache blocks
  double most_trips_ = 0, joins_ = 0, panels_ = 0, partial_results_ = 0;
};

CpuCost cost_of(const CpuNest& nest, const CpuPlan& plan);

}  // namespace tinygrad::codegen
