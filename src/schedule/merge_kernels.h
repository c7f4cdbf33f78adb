#pragma once
#include <vector>

#include "schedule/explanation.h"
#include "schedule/rangeify.h"

namespace tinygrad::schedule {

/// What one iteration of a kernel's loops stores.
struct Output {
  UOp target;  ///< PARAM that is written
  UOp target_index, value;
};

/// Stores over one space: a kernel as it will be. Or a copy, if `copied` is set.
struct MergedKernel {
  UOps ranges;
  std::vector<Output> outputs;
  UOp copied;
  Symbol device;
};

/// Joins kernels over equal spaces where that saves memory traffic: one reads at each place what the other writes there, or both read the
/// same elements; small kernels also to save launches. A value that is read by the same iteration only is handed over instead of loaded,
/// and a temporary that nobody reads any more is not stored. `order` is an order in which the kernels may run; the result is one too.
/// `explainer`, where there is one, is told why.
std::vector<MergedKernel> merge_kernels(const std::vector<Kernel>& kernels, const std::vector<int>& order, const TargetOf& target_of,
                                        int32_t first_temporary, Explainer* explainer = nullptr);

}  // namespace tinygrad::schedule
