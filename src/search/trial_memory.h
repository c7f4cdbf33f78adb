#pragma once
/// The buffers of a kernel that is tried out.

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory_file.h"
#include "kernel/kernel_info.h"
#include "search/worker_protocol.h"

namespace tinygrad::search {

/// What a buffer holds and what was stored to it, in memory that a worker maps too.
class TrialMemory {
 public:
  /// Buffers of full size with random numbers: floats in [-1, 1), small integers that are no index out of bounds. Throws
  /// OutOfMemoryError.
  TrialMemory(const KernelInfo& info, std::span<const int64_t> variables);
  /// The same numbers for a kernel whose floats are float64.
  TrialMemory(const KernelInfo& info, std::span<const int64_t> variables, const TrialMemory& same);

  int descriptor() const { return file_.descriptor(); }
  WorkerSetup setup(uint32_t threads, uint64_t cold_bytes) const;

  struct Slot {
    DType dtype = DType::void_;
    uint64_t count = 0;
    WorkerBuffer place = {};
  };
  const std::vector<Slot>& slots() const { return slots_; }
  std::span<std::byte> content(const Slot& slot) const { return file_.at(slot.place.content, slot.place.bytes); }
  /// The contents of a written buffer after a run.
  std::span<std::byte> result(const Slot& slot) const { return file_.at(slot.place.result, slot.place.bytes); }

 private:
  std::vector<Slot> slots_;
  MemoryFile file_;
};

/// Bytes that a TrialMemory of a kernel would take.
uint64_t trial_bytes(const KernelInfo& info, std::span<const int64_t> variables);

}  // namespace tinygrad::search
