#pragma once
/// Whether indices that are computed are in range: CHECK_OOB.

#include <cstdint>
#include <optional>
#include <string>

#include <tinygrad/tensor.h>

#include "base/function_ref.h"
#include "uop/uop.h"

namespace tinygrad::tensor {

/// Indices that calls of a jitted function look at, and what is said of one that is out of range.
struct IndexCheck {
  /// A BUFFER of a call with the largest index: as an unsigned number, counted from the least that is in range.
  UOp largest = {};
  DType dtype = DType::int32;  ///< of the indices: an integer of 32 or 64 bits
  bool wraps = false;          ///< negative ones count from the end
  UOp size = {}, count = {};   ///< of the axis; how many indices there are: index expressions
  int32_t axis = 0;
  std::string operation = {}, subject = {};  ///< what indexes; what is indexed by what, and where

  /// IndexError if the largest is out of range; `value_of` tells sizes.
  void look(uint64_t found, FunctionRef<int64_t(const UOp&)> value_of) const;
};

/// uint32 for 32 bits, uint64 for 64.
inline DType unsigned_like(DType dtype) { return itemsize(dtype) == 4 ? DType::uint32 : DType::uint64; }

/// With CHECK_OOB: IndexError for an element of `index` that is no place of the axis of `of`, unless it is `ignored`. Negative ones count
/// from the end if it `wraps`. An index that costs much to compute is computed for good. While a jitted function is recorded, each of its
/// replays will look too.
void check_indices(const char* operation, const Tensor& index, const Tensor& of, int axis, bool wraps = false,
                   std::optional<int64_t> ignored = {});

struct OutOfRange {
  int64_t at, value;
};
/// The first of these integers that is less than `low`, or not less than `high`, and not `ignored`. Null as well for values that are not
/// in memory which the host can look at without waiting: then `looked` becomes false.
std::optional<OutOfRange> first_out_of_range(const UOp& values, int64_t low, int64_t high, std::optional<int64_t> ignored, int64_t most,
                                             bool& looked);

}  // namespace tinygrad::tensor
