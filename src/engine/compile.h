#pragma once
#include <memory>
#include <span>
#include <vector>

#include "program/program.h"

namespace tinygrad::engine {

/// get_programs() of kernels with the opts that a search finds, if options ask for one; they are searched one after another.
std::vector<std::shared_ptr<const Program>> searched_programs(std::span<const KernelOn> kernels, const Options& options);

}  // namespace tinygrad::engine
