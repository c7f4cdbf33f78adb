#pragma once
/// The RANGEs of kernels that are being made, and which of them stand in which.

#include <cstdint>
#include <vector>

#include "shape/sint.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

class Loops {
 public:
  using Ids = SmallVector<int, 6>;
  struct Loop {
    double size = 1;
    bool reduces = false;
    const UOp* max = nullptr;  ///< which sums are carried with
    Ids around;                ///< ids of the ranges it stands in, itself included, sorted
  };

  /// A new RANGE that stands in those of `around`; a constant for a loop of one iteration.
  UOp open(const SInt& size, AxisKind kind, Ids around);

  Loop& operator[](int id) { return all_[size_t(id)]; }
  const Loop& operator[](int id) const { return all_[size_t(id)]; }
  Loop& of(const UOp& range) { return (*this)[id(range)]; }
  const Loop& of(const UOp& range) const { return (*this)[id(range)]; }
  static int id(const UOp& range) { return range.arg_as<RangeArg>().id; }

  /// Adds the ids of the ranges that an expression's evaluation stands in: those it depends on, and those they stand in.
  void add_around(const UOp& expression, Ids& ids) const;

 private:
  std::vector<Loop> all_;
};

}  // namespace tinygrad::schedule
