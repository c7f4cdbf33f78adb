#pragma once
/// Schedules that were run, made into one list of calls that runs again for almost nothing.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/options.h"
#include "device/buffer.h"
#include "engine/command_list.h"
#include "engine/prepared_constants.h"
#include "engine/recorded_call.h"
#include "program/program.h"
#include "schedule/schedule.h"

namespace tinygrad::engine {

/// Calls in the order to run. As a graph it is a LINEAR whose calls have only PARAMs: what a call brings and what is fixed first, then the
/// planned temporaries. Safe for several threads: each run has a lease of the memory between the kernels.
class Capture {
 public:
  /// `variables` with the values that are the same in each call; those without get one for each run, in their order here. Compiles what is
  /// not known yet. `looked_at` are slots of kind lease that the host looks at in each run (see run()).
  Capture(std::vector<CapturedSlot> slots, std::span<const RecordedCall> calls, ListVariables variables, const Options& options,
          std::vector<uint32_t> looked_at = {});
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  const UOp& linear() const { return linear_; }
  size_t kernel_count() const { return list_->kernel_count(); }
  bool written(size_t slot) const { return list_->uses()[slot].written; }
  bool read(size_t slot) const { return read_[slot]; }
  /// The device that a slot's memory is on.
  Device& device(size_t slot) const { return list_->device(slot); }
  /// What the kernels rely on, in bytes.
  uint16_t alignment(size_t slot) const { return list_->uses()[slot].alignment; }

  /// Memory between the kernels, and what they are launched with.
  struct Lease {
    std::vector<BufferPtr> owned;  ///< arenas, their parts, memory that the host fills
    CommandList::Binding binding;
  };
  /// Memory that nobody else uses until it is given back. Throws OutOfMemoryError.
  std::unique_ptr<Lease> lease();
  void give_back(std::unique_ptr<Lease> lease) noexcept;
  /// Frees the memory of leases that nobody has.
  void free_leases();
  /// The memory of a slot of kind lease.
  static Buffer& buffer(Lease& lease, size_t slot);
  /// Slots of kind call that hold nothing before a run, such as results: a run can be cancelled after it has written there.
  void note_made(std::span<const size_t> made);
  /// Runs all calls. `buffers` by slot, of those of kind call (the others are not looked at), all allocated. If a launch throws, all that
  /// calls write beyond the lease is poisoned. `look` gets the number of each slot that is looked at, once that is written and before
  /// anything beyond the lease is written after it; an IndexError that it throws ends the run, and nothing is poisoned.
  void run(
      Lease& lease, std::span<Buffer* const> buffers, std::span<const int64_t> variables,
      FunctionRef<void(size_t number)> look = [](size_t) {});
  /// What the last run of a lease, which threw, was at.
  CommandList::Failed failed(const Lease& lease) const { return list_->failed(lease.binding); }

 private:
  std::unique_ptr<Lease> free_or_new_lease();
  void note_writes(std::span<Buffer* const> buffers) const;
  std::vector<bool> used_slots(std::span<const RecordedCall> calls) const;
  /// Calls of PARAMs: those of temporaries have the numbers from `first` on.
  struct Numbered {
    std::vector<UOp> calls, temporaries;
    int32_t first = 0;
  };
  Numbered numbered(std::span<const RecordedCall> calls) const;
  void plan(std::span<const RecordedCall> calls, bool reuse);
  std::vector<ListSlot> list_slots() const;
  void poison(const Lease& lease, std::span<Buffer* const> buffers, const char* reason);

  std::vector<CapturedSlot> slots_;    // the caller's, then those of prepared copies
  std::vector<uint32_t> temporaries_;  // slots of that kind, as in the plan
  UOp linear_;
  schedule::Plan plan_;  // of the memory between the calls that are left
  std::vector<Device*> arenas_;
  std::optional<CommandList> list_;
  std::vector<bool> read_;   // slots that the list reads, or what is prepared for it
  size_t lasting_from_ = 0;  // the first step that writes what outlasts a cancelled run

  PreparedConstants prepared_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lease>> free_;
};

}  // namespace tinygrad::engine
