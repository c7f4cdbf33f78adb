#pragma once
/// For graphs of many like steps.

#include "ops/creation.h"
#include "ops/elementwise.h"

namespace tinygrad::ops {

/// 0, 1, ..., each a vector of one in memory: steps that differ only in a number read from memory are the same kernels, compiled once.
inline UOps step_numbers(int64_t count) {
  UOps out;
  if (count > 0) out.push_back(contiguous(iota(1)));
  while (int64_t(out.size()) < count) out.push_back(contiguous(add(out.back(), 1)));
  return out;
}

}  // namespace tinygrad::ops
