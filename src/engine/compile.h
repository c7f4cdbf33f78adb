#pragma once
#include <span>
#include <utility>
#include <vector>

#include "program/program.h"

namespace tinygrad::engine {

/// The programs of kernels, null where a body is no kernel. Those that options ask a search for are searched one after another; then what
/// is missing is compiled in parallel.
std::vector<std::shared_ptr<const Program>> get_programs(std::span<const std::pair<UOp, Device*>> bodies, const Options& options);

}  // namespace tinygrad::engine
