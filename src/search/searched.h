#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/options.h"
#include "device/device.h"
#include "program/program.h"
#include "search/beam.h"
#include "uop/uop.h"

namespace tinygrad::search {

/// The kernel with the opts that BEAM asks for: known ones, or those that a search finds now. The kernel as it is where options ask for
/// none, the device or the machine cannot search (a line in the log says so once), or the heuristics were not beaten. Searches of several
/// threads take turns; they compile in the task pool.
UOp searched(const UOp& sink, Device& device, const Options& options, const BeamHooks& hooks = {}, BeamStatistics* statistics = nullptr);

/// get_programs() of kernels with those opts; they are searched one after another.
std::vector<std::shared_ptr<const Program>> searched_programs(std::span<const KernelOn> kernels, const Options& options);

/// searched(), without a search where nothing is known.
UOp known_best(const UOp& sink, const Device& device, const Options& options);

}  // namespace tinygrad::search
