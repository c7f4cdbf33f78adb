#pragma once
/// Running schedules.

#include "base/options.h"
#include "schedule/schedule.h"

namespace tinygrad::engine {

/// The Target of a device, for the scheduler.
const Target& target_of(Symbol device);

/// Runs a schedule on the memory of its inputs: compiles what is missing (in parallel), takes all memory, then launches. If compiling or
/// allocating throws, nothing has been written. If a launch throws, the buffers that launches have begun to write are poisoned.
void run_schedule(const schedule::Schedule& schedule, const Options& options);

}  // namespace tinygrad::engine
