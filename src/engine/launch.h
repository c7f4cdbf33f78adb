#pragma once
/// One launch, with its counters and its line of the log.

#include <span>

#include "program/program.h"

namespace tinygrad::engine {

/// Launches a program; adds to GlobalCounters, and logs a line for DEBUG=2.
void launch(const Program& program, Symbol device, std::span<void* const> handles, std::span<const int64_t> variables);

}  // namespace tinygrad::engine
