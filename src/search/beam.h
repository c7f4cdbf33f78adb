#pragma once
/// The search for the opts of a kernel (BEAM): candidates are compiled here and timed in a tg-worker.

#include <functional>
#include <string>

#include "base/options.h"
#include "device/device.h"
#include "uop/uop.h"

namespace tinygrad::search {

/// What tests of a search change.
struct BeamHooks {
  /// Takes the object of the n-th candidate and gives what the worker gets.
  std::function<std::string(size_t n, std::string object)> object = {};
};

/// What a search has done, for tests and the log.
struct BeamStatistics {
  size_t prepared = 0;  ///< candidates that were lowered
  size_t timed = 0;     ///< in a worker
  size_t bad = 0;       ///< of those, that crashed, did not end or were wrong
  double seconds = 0;
  double heuristic_s = 0, winner_s = 0;  ///< of one run, when the two were compared at last
};

/// The kernel with the opts that BEAM asks for: known ones, or those that a search finds now. The kernel as it is where options ask for
/// none, the device or the machine cannot search (a line in the log says so once), or the heuristics were not beaten. Never throws for
/// what candidates do. Searches of several threads take turns; they compile in the task pool.
UOp searched(const UOp& sink, Device& device, const Options& options, const BeamHooks& hooks = {}, BeamStatistics* statistics = nullptr);

/// The same, without a search where nothing is known.
UOp known_best(const UOp& sink, const Device& device, const Options& options);

}  // namespace tinygrad::search
