#pragma once
/// The search for the opts of a kernel (BEAM): candidates are compiled here and timed in a tg-worker.

#include <functional>
#include <optional>
#include <string>

#include "base/options.h"
#include "device/device.h"
#include "search/search_record.h"
#include "uop/uop.h"

namespace tinygrad::search {

/// What tests of a search change.
struct BeamHooks {
  /// Takes the object of the n-th candidate and gives what the worker gets.
  std::function<std::string(size_t n, std::string object)> object = {};
  std::optional<double> too_short_s = {};  ///< of the heuristics' kernel: there is nothing to win
};

/// What a search has done, for tests and the log.
struct BeamStatistics {
  size_t prepared = 0;    ///< candidates that were lowered
  size_t duplicates = 0;  ///< of those, that have the code of another one, and were dropped
  size_t known = 0;       ///< whose verdict was on record
  size_t timed = 0;       ///< in a worker
  size_t bad = 0;         ///< of those, that crashed, did not end or were wrong
  double seconds = 0;
  double heuristic_s = 0, winner_s = 0;  ///< of one run, when the two were compared at last
};

/// The kernel optimized in a way.
UOp optimized(const UOp& sink, const Winner& how);

/// Searches for the opts of a kernel. `worker` is the program tg-worker. What becomes of candidates is recorded. Throws CompileError if the
/// heuristics' kernel does not compile and DeviceError if no worker starts; nothing for what candidates do.
Winner beam_search(const UOp& sink, Device& device, const Options& options, const std::string& worker, const SearchRecord& record,
                   const BeamHooks& hooks, BeamStatistics& statistics);

}  // namespace tinygrad::search
