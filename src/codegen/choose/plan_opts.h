#pragma once
#include <vector>

#include "codegen/choose/cpu_nest.h"

namespace tinygrad::codegen {

/// The opts that make a nest's loops what the plan says. Reductions are unrolled by what the plan leaves of the registers, and where the
/// nest is the whole kernel, a loop is shared out among threads.
std::vector<Opt> opts_of(const CpuNest& nest, const CpuPlan& plan);

}  // namespace tinygrad::codegen
