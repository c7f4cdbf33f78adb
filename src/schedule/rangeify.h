#pragma once
#include "schedule/explanation.h"
#include "schedule/schedule.h"

namespace tinygrad::schedule {

/// From outputs to inputs, gives each value the places it is needed at and decides by cost which values are stored; then, from inputs to
/// outputs, writes each kernel as scalar expressions over ranges. Takes a prepared graph, and gives the kernels in an order in which they
/// may run (kernel_calls.h). Temporaries are PARAMs with slots from `first_temporary` on. `explainer`, where there is one, is told why.
UOp rangeify(const UOp& sink, const TargetOf& target_of, int32_t first_temporary, Explainer* explainer = nullptr);

}  // namespace tinygrad::schedule
