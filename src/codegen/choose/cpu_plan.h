#pragma once
/// What is chosen for a loop nest on a CPU, as a value. cpu_candidates.h lists the plans that a nest may have, cpu_cost.h says what one
/// costs, and plan_opts.h writes it as opts.

#include <cstdint>
#include <vector>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// A vector axis and its number of lanes.
struct Lane {
  int axis = -1;  ///< place in the nest; -1: none
  int64_t lanes = 1;
};
/// A tensor core that is used instead of vectors: `n` are its columns of the result, `k` the terms of a sum that it adds at once, `m` its
/// rows of the result, if there are several.
struct CoreUse {
  int32_t number = 0;
  Lane n, k, m;
  UOps casts;           ///< conversions that its instruction includes
  int64_t sums = 1;     ///< lanes of a vector of sums
  int temporaries = 0;  ///< registers that it takes besides
  double steps = 2;     ///< instructions of a product (CoreCosts); a multiplication and an addition are two
};
struct Lanes {
  std::vector<Lane> axes = {};
  const CoreUse* core = nullptr;

  auto begin() const { return axes.begin(); }
  auto end() const { return axes.end(); }
  const Lane& operator[](size_t i) const { return axes[i]; }
  size_t size() const { return axes.size(); }
  bool empty() const { return axes.empty(); }
  /// Lanes along an axis; 1 where it has no vectors.
  int64_t along(int axis) const {
    for (const Lane& l : axes)
      if (l.axis == axis) return l.lanes;
    return 1;
  }
  /// Lanes of the widest vectors.
  int64_t widest() const {
    int64_t n = 1;
    for (const Lane& l : axes) n = l.lanes > n ? l.lanes : n;
    return n;
  }
};

/// The register tile: so many neighbouring elements along each of at most two output axes are computed side by side. A copy is the code
/// of one of them.
struct Tile {
  int axis[2] = {-1, -1};
  int64_t count[2] = {1, 1};

  int64_t copies() const { return count[0] * count[1]; }
  int64_t along(int of) const { return (axis[0] == of ? count[0] : 1) * (axis[1] == of ? count[1] : 1); }
};

/// The arguments that a cache holds while loops use them again, as sets of bits.
struct Operands {
  uint64_t resident = 0;  ///< tiles of them stay in the second cache while output loops use them again
  bool packed = true;     ///< these tiles are panels: copied in front of the loops that use them, in the order in which they will be read
  uint64_t windows = 0;   ///< windows of them are copied, in which the innermost output loops move
  uint64_t computed = 0;  ///< of those, the ones whose copies hold values that are computed of the elements
  bool whole = false;     ///< the resident tiles are all of their arguments: each thread copies them once, in front of all loops

  uint64_t panels() const { return packed ? resident : 0; }
};

/// The loops of a long reduction that go around the output loops in which a resident tile is used again.
struct CacheBlocks {
  uint64_t axes = 0;  ///< reduced axes, as bits
  int64_t block = 0;  ///< iterations of the innermost of these axes that stay inside of the output loops; 0: none
};

struct CpuPlan {
  Lanes lanes = {};
  Tile tile = {};
  Operands operands = {};
  CacheBlocks blocks = {};
  int64_t joined_steps = 1;  ///< steps of the joined loop that are taken at once, where that loop goes around output loops
  bool transposes = false;   ///< vectors are along the axis that is stored along, the tile along the one that is loaded along
};

}  // namespace tinygrad::codegen
