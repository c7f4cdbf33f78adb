#pragma once
#include "schedule/explanation.h"
#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// Joins kernels over equal spaces where that saves memory traffic: one reads at each place what the other writes there, or both read the
/// same elements; small kernels also to save launches. A value that is read by the same iteration only is handed over instead of loaded,
/// and a temporary that nobody reads any more is not stored. Takes the list of rangeify (kernel_calls.h), in which each kernel has one
/// store; the result is in an order in which it may run, too. `explainer`, where there is one, is told why.
UOp merge_kernels(const UOp& linear, const TargetOf& target_of, int32_t first_temporary, Explainer* explainer = nullptr);

}  // namespace tinygrad::schedule
