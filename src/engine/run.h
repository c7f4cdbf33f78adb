#pragma once
/// Running schedules.

#include <string>
#include <vector>

#include "base/options.h"
#include "program/program.h"
#include "schedule/schedule.h"

namespace tinygrad::engine {

/// The Target of a device, for the scheduler.
const Target& target_of(Symbol device);

/// Runs a schedule on the memory of its inputs: compiles what is missing (in parallel), takes all memory, then launches. If compiling or
/// allocating throws, nothing has been written. If a launch throws, the buffers that launches have begun to write are poisoned.
void run_schedule(const schedule::Schedule& schedule, const Options& options);

/// Compiles the kernels of a schedule as run_schedule() does, but for BEAM, and takes no memory.
void compile_schedule(const schedule::Schedule& schedule, const Options& options);

/// What render_schedule() made, and the seconds that passed meanwhile.
struct RenderReport {
  size_t kernels = 0;
  int64_t bytes = 0;                      ///< of all buffers that launches read or write, each counted once a launch and direction
  std::vector<RenderedProgram> programs;  ///< of the different ones among them
  std::vector<std::string> opts;          ///< applied to each of those, as text; if they were asked for
  double lower_s = 0, render_s = 0;
};

/// Lowers and renders every kernel of a schedule as run_schedule() does (each once, in parallel), past the caches, and stops there.
RenderReport render_schedule(const schedule::Schedule& schedule, const Options& options, bool opts = false);

}  // namespace tinygrad::engine
