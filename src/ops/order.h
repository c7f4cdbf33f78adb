#pragma once
/// The order of values in which NaN is the greatest and equal to itself.

#include "ops/elementwise.h"

namespace tinygrad::ops {

inline UOp same(const UOp& a, const UOp& b) {
  const UOp equal = ops::eq(a, b);
  return is_float(a.dtype()) ? bitwise_or(equal, bitwise_and(isnan(a), isnan(b))) : equal;
}

/// a < b.
inline UOp before(const UOp& a, const UOp& b) {
  const UOp less = lt(a, b);
  return is_float(a.dtype()) ? bitwise_or(less, bitwise_and(isnan(b), ops::logical_not(isnan(a)))) : less;
}

struct SortedKeys {
  UOp keys, order;
};
/// Unsigned keys of at most `key_bits` bits of the last axis in order, and where each was (index_dtype); equal ones keep their order.
SortedKeys sorted_keys(const UOp& keys, int key_bits);

}  // namespace tinygrad::ops
