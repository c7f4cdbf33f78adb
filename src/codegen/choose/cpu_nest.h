#pragma once
/// A loop nest on a CPU, before anything is chosen for it: what the costs of all of its plans have in common.

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "codegen/choose/cpu_plan.h"
#include "codegen/choose/nest.h"
#include "target/costs.h"

namespace tinygrad::codegen {

/// Cycles of a kernel from which staging, cache blocks and the traffic of caches are weighed.
inline constexpr double worth_tiling = 32768;

/// Whether a set of axes has one; false for axis -1.
constexpr bool has_axis(uint64_t bits, int axis) { return axis >= 0 && (bits >> axis & 1); }

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

/// What is known of the kernel around the nest.
struct AroundNest {
  std::span<const Opt> chosen = {};  ///< the opts of the kernel's other nests, with which this one may share loops
  std::vector<CoreUse> cores = {};   ///< tensor cores that may be used
  bool is_kernel = true;             ///< the nest is the whole kernel
  bool updates_in_place = false;     ///< the kernel stores to what it loads from
  bool bounds_loops = false;         ///< masks will end loops of reductions early (bound_loops.h)
};

/// It and what it is made of live longer than the plans for it.
class CpuNest {
 public:
  CpuNest(const Nest& nest, const Target& target, AroundNest around);
  CpuNest(const CpuNest&) = delete;  // plans point to its tensor cores

  const Nest& nest;
  const Target& target;
  const AroundNest around;
  const uint64_t reduce_axes;
  const std::vector<WorkPart> parts;
  const std::vector<ReducePart> reduces;
  const bool uses_once;           ///< no element that reductions load is used twice
  const bool has_bounds;          ///< masks end a loop of it early
  const uint64_t taken, vectors;  ///< axes to which other nests have given opts, and lanes
  const CacheRates rates;
  const double independent;  ///< multiply-adds in flight that hide how long one takes

  bool is_joined() const { return nest.joined_axis >= 0; }
  const NestAxis& axis(int i) const { return nest.axes[size_t(i)]; }
  size_t axes() const { return nest.axes.size(); }
  /// Whether a work is a LOAD inside of a reduction.
  bool is_reduced_load(const NestedWork& w) const;
  /// The output axes along which the same element is loaded again.
  uint64_t reuse_axes(const NestedWork& w) const { return w.inside & ~w.depends & ~reduce_axes; }
  /// True if an output loop and a loop of a reduction move the load along the same axis of memory, as in a convolution.
  bool has_window(const NestedWork& w) const;
  /// Whether a work depends on both axes.
  bool meet(int a, int b) const;
  /// Whether a work depends on the axis and on one along which another nest has vectors.
  bool meets_vectors(int a) const;
  /// Operations and accesses that depend on both axes.
  int64_t operations_along(int a, int b) const { return operations_[size_t(a) * axes() + size_t(b)]; }
  /// True for the axes of terms that stay in registers until the results use them, which need the same number of steps (keep_terms.h).
  bool reuses_terms(int axis) const;
  /// Whether a load may be staged: the loops of tiles have known sizes, and its index needs no load and no reduction.
  bool may_stage(const NestedWork& w) const;
  int64_t registers() const;
  /// The part of a bounded loop's iterations that its masks leave, if `at_once` neighbouring results leave the loop together.
  double unmasked_part(const NestAxis& loop, int64_t at_once) const;

 private:
  const std::vector<int64_t> operations_;                                   ///< of operations_along()
  mutable std::map<std::pair<const NestAxis*, int64_t>, double> unmasked_;  ///< the answers of unmasked_part()
};

/// The ReducePart of one REDUCE alone, in these loops.
ReducePart reduce_part(const NestedWork& w, uint64_t loops);

/// Accumulators of these REDUCEs, in vectors. Copies along an axis that a result does not depend on share it. Of the values that a
/// general REDUCE carries only one depends on the tiled axis; the others are a maximum, a count or the like.
int64_t accumulators(const ReducePart& r, const Tile& t);

}  // namespace tinygrad::codegen
