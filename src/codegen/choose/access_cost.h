#pragma once
/// What vectors make of a work's cost: the part of its cost with scalars.

#include <utility>

#include "base/small_vector.h"
#include "codegen/choose/planned_loops.h"

namespace tinygrad::codegen {

/// True if lanes are every second to fourth element: one access then covers the whole run (late/vectorize_lanes.h).
bool is_every_few(const NestedWork& w, const Lane& l);

/// The part for a work that is not staged: a vector operation counts as one of its lanes. Accesses besides:
///
///   lanes are neighbours           vectors, half as many again where the end of a row is masked
///   lanes are every n-th element   n accesses of the run, and two shuffles, for each vector (n of 2 to 4)
///   lanes are anywhere             2 for each element: an access a lane, and shuffles; 4 for a STORE to a cache line a lane, 12 to a page
///   a gate                         2 times as much; 4 times, if lanes have gates of their own, which are masks
double share_as_it_lies(const CpuNest& in, const NestedWork& w, const Lanes& lanes);

/// The factor of this for a load whose masks bound rows, as padding does, where each vector's mask is known: most vectors have none.
double share_of_known_masks(const CpuNest& in, const NestedWork& w, const Lanes& lanes);

/// The part for a work of these loops. What is staged lies as vectors; tensor cores include some casts.
double share_of(const PlannedLoops& loops, const NestedWork& w, const Lanes& lanes);

/// The factor of work that masks throw away in bounded loops (bound_loops.h): elements that are computed side by side leave them together,
/// with the last of them.
class BoundedWork {
 public:
  BoundedWork(const CpuNest& in, const Lanes& lanes, const Tile& t);
  double of(const NestedWork& w) const {
    double more = 1;
    for (const auto& [loop, factor] : loops_)
      if (w.inside & loop) more *= factor;
    return more;
  }

 private:
  SmallVector<std::pair<uint64_t, double>, 4> loops_;  ///< as a bit, and the factor of what is in it
};

/// Cycles to join lanes at the end of reductions, one tile's copy after another: a shuffle and an operation for each half.
///
///   results * 4 * log2(lanes)
double joins(const CpuNest& in, const Lanes& lanes);
/// The same where the copies of a tile are joined together, so that they share shuffles.
double joins(const CpuNest& in, const Lanes& lanes, const Tile& t);

/// Cycles of the whole nest with these vectors and no register tile: operations and accesses, and joining lanes. Caches are left out.
double work_of(const PlannedLoops& loops, const Lanes& lanes);

}  // namespace tinygrad::codegen
