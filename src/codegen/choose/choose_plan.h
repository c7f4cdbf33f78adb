#pragma once
/// The search for a plan of a loop nest on a CPU.

#include <optional>
#include <vector>

#include "codegen/choose/cpu_cost.h"

namespace tinygrad::codegen {

struct CostedPlan {
  CpuPlan plan = {};
  double cost = 0;  ///< CpuCost::total()
};

/// The cheapest plan that was found. Transposes have no cost, and neither have joined reductions whose loop goes around an output axis:
/// they are taken wherever they fit.
CostedPlan choose_plan(const CpuNest& nest);

/// The cheapest plans first: a few tiles for each set of vectors and operands. Where a search may begin.
std::vector<CostedPlan> cheapest_plans(const CpuNest& nest, size_t count);

}  // namespace tinygrad::codegen
