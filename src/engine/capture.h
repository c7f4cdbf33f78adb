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
  Capture(std::vector<CapturedSlot> slots, std::span<const RecordedCall> calls,
          std::vector<std::pair<Symbol, std::optional<int64_t>>> variables, const Options& options, std::vector<uint32_t> looked_at = {});
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  const UOp& linear() const { return linear_; }
  size_t kernel_count() const { return kernels_; }
  bool written(size_t slot) const { return uses_[slot].written; }
  bool read(size_t slot) const { return uses_[slot].read; }
  /// What the kernels rely on, in bytes.
  uint16_t alignment(size_t slot) const { return uses_[slot].alignment; }

  /// Some of the launches as one object of their device, with what they are launched with.
  struct LeasedGraph {
    std::unique_ptr<Graph> graph;       ///< null where the device would rather not
    std::vector<GraphLaunch> launches;  ///< none: not made yet
  };
  /// Memory between the kernels, and lists of what they are launched with.
  struct Lease {
    std::vector<BufferPtr> owned;    ///< arenas, their parts, memory that the host fills
    std::vector<Buffer*> buffers;    ///< by slot; those of the call are put in for each run
    std::vector<void*> handles;      ///< of all launches after one another
    std::vector<int64_t> variables;  ///< the same
    std::vector<LeasedGraph> graphs;
    size_t step = 0;               ///< that runs, or has failed; as many as there are steps for none
    std::vector<uint8_t> changed;  ///< steps whose handles or variables are not those of their graph's last run; if there are graphs
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
  struct Failed {
    std::string kernel = {};  ///< empty for a copy, and before all calls
    uint32_t part = 0;        ///< RecordedCall::part
  };
  Failed failed(const Lease& lease) const;

 private:
  struct Use {
    bool read = false, written = false;
    uint16_t alignment = 1;
  };
  /// A launch with all that can be known before; a copy if there is no kernel.
  struct Step {
    std::shared_ptr<const Program> program;
    Kernel* kernel = nullptr;
    Device* device = nullptr;
    uint32_t first_handle = 0, handle_count = 0;
    uint32_t first_variable = 0, variable_count = 0;
    bool dims_known = true;
    LaunchDims dims;
    uint32_t to = 0, from = 0;  ///< slots of a copy
    uint32_t part = 0;
  };
  /// A value to be put in a list for each run: at `index`, number `source`.
  struct Patch {
    uint32_t index, source, step;
  };
  /// Launches of a device whose cost does not depend on variables, and that cost.
  struct Known {
    const Device* device = nullptr;
    uint64_t kernels = 0, ops = 0, bytes = 0;
  };
  /// Before a step, the host looks at slots: those from `first` to `end` in `look_order_`.
  struct Look {
    uint32_t step = 0, first = 0, end = 0;
  };
  /// Steps, one after another, that are one object of their device.
  struct Batch {
    uint32_t first = 0, count = 0;
  };

  std::unique_ptr<Lease> free_or_new_lease();
  void note_writes(std::span<Buffer* const> buffers) const;
  /// Calls of PARAMs: those of temporaries have the numbers from `first` on.
  struct Numbered {
    std::vector<UOp> calls, temporaries;
    int32_t first = 0;
  };
  Numbered numbered(std::span<const RecordedCall> calls) const;
  void plan(std::span<const RecordedCall> calls, bool reuse);
  void note_uses(const RecordedCall& call, const Program* program);
  void add_step(const RecordedCall& call, std::shared_ptr<const Program> program);
  void place_looks();
  bool writes(const Step& step, FunctionRef<bool(uint32_t slot)> which) const;
  void make_batches(int first_size);
  void note_async_writes();
  void add_variable(Symbol name, const RecordedCall& call, Step& step);
  BufferPtr make_buffer(Symbol device, int64_t size, DType dtype) const;
  void patch(Lease& lease, std::span<Buffer* const> buffers, std::span<const int64_t> variables) const;
  void run_all(Lease& lease, FunctionRef<void(size_t number)> look) const;
  void run_step(const Step& step, Lease& lease, bool timed) const;
  void run_batch(Lease& lease, const Batch& batch, LeasedGraph& leased) const;
  static void make_graph(Lease& lease, std::span<const Step> steps, LeasedGraph& leased);
  static std::span<void* const> handles_of(const Step& step, const Lease& lease);
  static std::span<const int64_t> variables_of(const Step& step, const Lease& lease);
  void poison(std::span<Buffer* const> buffers, const char* reason);

  std::vector<CapturedSlot> slots_;  // the caller's, then those of prepared copies
  const std::vector<std::pair<Symbol, std::optional<int64_t>>> variables_;
  std::vector<uint32_t> temporaries_;  // slots of that kind, as in the plan
  std::vector<Use> uses_;
  UOp linear_;
  schedule::Plan plan_;  // of the memory between the calls that are left
  std::vector<Step> steps_;
  size_t lasting_from_ = 0;  // the first step that writes what outlasts a cancelled run
  const std::vector<uint32_t> looked_at_;
  std::vector<uint32_t> look_order_;                        // numbers of slots that are looked at, as they are written
  std::vector<Look> looks_;                                 // in the order of their steps
  std::vector<Batch> batches_;                              // in the order of their steps
  std::vector<std::pair<Device*, uint32_t>> async_writes_;  // slots that kernels of asynchronous devices write
  std::vector<uint32_t> handle_slots_;                      // of all launches after one another
  std::vector<Patch> handle_patches_, variable_patches_;
  std::vector<int64_t> variable_values_;
  size_t kernels_ = 0;
  std::vector<Known> known_;
  bool has_copies_ = false;

  PreparedConstants prepared_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lease>> free_;
};

}  // namespace tinygrad::engine
