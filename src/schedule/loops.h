#pragma once
/// The RANGEs of kernels that are being made, and which of them stand in which.

#include <cstdint>
#include <vector>

#include "shape/sint.h"
#include "uop/node_map.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// Ids of ranges count from 0 in each kernel, so kernels of one form are made of the same expressions.
class Loops {
 public:
  using Ids = SmallVector<int, 6>;
  struct Loop {
    double size = 1;
    bool reduces = false;
    const UOp* max = nullptr;  ///< which sums are carried with
    Ids around;                ///< ids of the ranges it stands in, itself included, sorted
    UOp range;
  };

  /// A new RANGE of a kernel that stands in those of `around`; a constant for a loop of one iteration.
  UOp open(int kernel, const SInt& size, AxisKind kind, Ids around);

  Loop& at(int kernel, int id) { return all_[numbers_[size_t(kernel)][size_t(id)]]; }
  const Loop& at(int kernel, int id) const { return all_[numbers_[size_t(kernel)][size_t(id)]]; }
  Loop& of(int kernel, const UOp& range) { return at(kernel, id(range)); }
  const Loop& of(int kernel, const UOp& range) const { return at(kernel, id(range)); }
  static int id(const UOp& range) { return range.arg_as<RangeArg>().id; }

  /// Adds the ids of the ranges that an expression's evaluation stands in: those it depends on, and those they stand in.
  void add_around(int kernel, const UOp& expression, Ids& ids) const;

  /// The ranges of a kernel with ids that no two kernels share, in the order in which they were opened.
  NodeMap<UOp> with_own_ids(int kernel) const;

 private:
  std::vector<Loop> all_;
  std::vector<std::vector<size_t>> numbers_;  ///< of each kernel's ranges, by their ids
};

}  // namespace tinygrad::schedule
