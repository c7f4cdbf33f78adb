#pragma once
/// Random lists of opts for the kernels of a schedule.

#include <string>
#include <string_view>
#include <vector>

#include "engine/fuzz/dice.h"
#include "schedule/schedule.h"

namespace tinygrad::test {

/// A list for each kernel, in the order of the schedule; an empty one leaves the choice to the heuristics.
using KernelOpts = std::vector<std::vector<Opt>>;

/// Lists that the kernels take on their targets.
KernelOpts random_opts(const schedule::Schedule& schedule, const schedule::TargetOf& target_of, uint64_t seed);

/// The schedule with its kernels marked to be optimized so.
schedule::Schedule with_opts(const schedule::Schedule& schedule, const KernelOpts& opts);

/// "LOCAL(0,4) UPCAST(1,2) | GROUP(0,8)", and back.
std::string to_string(const KernelOpts& opts);
KernelOpts parse_kernel_opts(std::string_view text);

}  // namespace tinygrad::test
