#pragma once
/// Opts without a search.

#include <optional>
#include <vector>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Opts that are good for most kernels of this kind on the target; they follow from the kernel and the Target alone. With `pads`, tensor
/// cores of GPUs also take products whose sizes their tiles do not divide.
std::vector<Opt> heuristic_opts(const UOp& sink, const Target& target, bool pads = false);

/// What they cost, in cycles of a core; no value for kernels whose opts are not weighed against others: of several nests, of no reduction,
/// of reductions that are carried along together, and on devices with work-groups.
std::optional<double> heuristic_cost(const UOp& sink, const Target& target);

/// What the heuristics would choose from, the cheapest by their costs first: where a search may begin. Of kernels of one nest, on CPUs.
std::vector<std::vector<Opt>> ranked_opts(const UOp& sink, const Target& target, size_t count);

}  // namespace tinygrad::codegen
