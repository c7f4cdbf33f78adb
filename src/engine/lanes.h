#pragma once
/// Steps of several devices of the host, run by its threads at the same time as far as what they read and write allows.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/small_vector.h"
#include "base/thread_pool.h"

namespace tinygrad::engine {

/// Memory that a step reads or writes.
struct MemoryUse {
  uintptr_t begin = 0, end = 0;
  bool writes = false;
};

/// Steps in lanes, one for each device. Those of a lane run one after another. A step waits for those of other lanes, added before it, that
/// write what it reads or use what it writes; so all is as if they ran in the order in which they were added.
class Lanes {
 public:
  explicit Lanes(size_t lanes) : lanes_(lanes) {}

  void add(size_t lane, std::span<const MemoryUse> uses);

  /// Until so many steps of a lane have run.
  struct Wait {
    uint32_t lane = 0, steps = 0;
    bool operator==(const Wait&) const = default;
  };
  size_t size() const { return steps_.size(); }
  std::span<const Wait> waits_of(size_t step) const;

  /// Calls work(step, begin, end) for pieces that cover [0, pieces(step)), each once, of the steps from `first` to `end`; all before
  /// `first` have run. Each step has a piece at least, and less than 2^32. When work throws, no more begins, and what the first of the
  /// steps threw is rethrown.
  void run(size_t first, size_t end, ComputePool& pool, FunctionRef<size_t(size_t step)> pieces,
           FunctionRef<void(size_t step, size_t begin, size_t end)> work) const;

 private:
  struct Step {
    uint32_t lane = 0, number = 0;  ///< the number among those of its lane
    uint32_t first_wait = 0, wait_count = 0;
  };
  /// Who used a run of bytes, up to `end`: the last that wrote it, and those that read that, the last of each lane.
  struct Users {
    uintptr_t end = 0;
    SmallVector<Wait, 1> writer;
    SmallVector<Wait, 2> readers;
  };
  using Memory = std::map<uintptr_t, Users>;
  class Run;

  Memory::iterator split(uintptr_t at);
  void note_use(const MemoryUse& use, const Wait& user, std::vector<uint32_t>& needed);

  std::vector<std::vector<uint32_t>> lanes_;  // the steps of each
  std::vector<Step> steps_;
  std::vector<Wait> waits_;
  std::vector<uint32_t> known_;  // for each step and lane, how many steps of it have run by then
  Memory memory_;
};

}  // namespace tinygrad::engine
