#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/options.h"
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::schedule {

/// Memory that a schedule needs between its kernels: a slice of an arena.
struct Temporary {
  DType dtype;
  int64_t size;  ///< elements
  size_t arena;
  int64_t offset;  ///< bytes, a multiple of 64
};

struct Arena {
  Symbol device;
  int64_t bytes;
};

struct Explanation;  // explanation.h

/// A schedule that names no memory: what the cache keeps. The arguments of its calls are PARAMs: slots below `input_count` are the
/// buffers of the graph it was made for, the following ones are the temporaries.
struct Plan {
  UOp linear;
  size_t input_count = 0;
  std::vector<Temporary> temporaries;
  std::vector<Arena> arenas;
  std::shared_ptr<const Explanation> explanation;  ///< if ScheduleOptions::explains
};

/// A plan with what fills its slots in this use.
struct Schedule {
  std::shared_ptr<const Plan> plan;
  std::vector<UOp> inputs;                         ///< BUFFERs, by slot
  std::vector<std::pair<UOp, int64_t>> variables;  ///< VARs with the values that were bound, by name
};

struct ScheduleOptions {
  bool cache = true;          ///< look the graph up first (SCACHE)
  bool memory_plan = true;    ///< temporaries with disjoint lives share memory (NO_MEMORY_PLANNER)
  bool split_reduces = true;  ///< cut long reductions to few results into two kernels (SPLIT_REDUCEOP)
  bool explains = false;      ///< keep why the schedule is as it is, and log it (DEBUG=3)
  Symbol only_device = {};    ///< of shards on several devices, what this one does, and what it gets from others
  bool open_numbers = false;  ///< numbers that the caller gave to operators are arguments of kernels (normalize.h)
  int spec = default_spec;    ///< from 1: verify the graph and the kernels (SPEC)

  static ScheduleOptions from(const Options& options) {
    return {.cache = options.scache,
            .memory_plan = !options.no_memory_planner,
            .split_reduces = options.split_reduceop,
            .explains = options.debug >= 3,
            .spec = options.spec};
  }
};

using TargetOf = std::function<const Target&(Symbol device)>;

/// Cuts a graph of effects into kernels. `sink` is a SINK of STOREs into views of BUFFERs, or of AFTERs of such. The result depends on the
/// structure of the graph alone. Graphs that differ only in which BUFFERs they use, or in the values of bound variables, share one Plan.
Schedule make_schedule(const UOp& sink, const TargetOf& target_of, const ScheduleOptions& options = {});

/// Number of plans made, and found in the cache, by this process; for tests.
struct CacheCounts {
  size_t made = 0, found = 0;
};
CacheCounts schedule_cache_counts();

}  // namespace tinygrad::schedule
