#pragma once
/// Launches and copies in the order to run: what a realize submits once, and what a captured call keeps to submit again.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/options.h"
#include "device/buffer.h"
#include "engine/host_segment.h"
#include "engine/list_step.h"
#include "engine/rank_plan.h"
#include "engine/recorded_call.h"
#include "program/program.h"
#include "schedule/kernel_calls.h"

namespace tinygrad::engine {

/// Variables of the calls: those with a value have the same one in each run, the others get one for each run, in their order here.
using ListVariables = std::vector<std::pair<Symbol, std::optional<int64_t>>>;

/// Calls with their programs and all else that can be known before there is memory. Const: several threads may run it, each with a binding
/// of its own.
class CommandList {
 public:
  /// Compiles what is not known yet. `looked_at` are slots that the host looks at in each run (see run()). Throws ValueError for a variable
  /// that is not among `variables`.
  /// `plan` is that of the calls as all ranks have them.
  CommandList(std::span<const RecordedCall> calls, RankPlan plan, std::vector<ListSlot> slots, ListVariables variables,
              const Options& options, std::vector<uint32_t> looked_at = {});
  CommandList(const CommandList&) = delete;
  CommandList& operator=(const CommandList&) = delete;

  size_t kernel_count() const { return kernels_; }
  /// What the commands do with the memory of a slot, and the alignment in bytes that kernels rely on.
  struct Use {
    bool read = false, written = false;
    uint16_t alignment = 1;
  };
  std::span<const Use> uses() const { return uses_; }
  Device& device(size_t slot) const { return *slots_[slot].device; }

  /// Has a device make one object of launches that follow one another (Device::make_graph): the first of at most `first_size` launches, so
  /// that the device can begin while the host goes on, each later one of twice as many; 0 is no limit. For lists that run again and again.
  void make_batches(int first_size);

  /// Some of the launches as one object of their device, with what they are launched with.
  struct BoundGraph {
    std::unique_ptr<Graph> graph;       ///< null where the device would rather not
    std::vector<GraphLaunch> launches;  ///< none: not made yet
  };
  /// Memory and values for one run at a time.
  struct Binding {
    std::vector<Buffer*> buffers;         ///< by slot
    std::vector<void*> handles = {};      ///< of all launches after one another
    std::vector<int64_t> variables = {};  ///< the same
    std::vector<int64_t> values = {};     ///< of the list's variables, in lists of ranks
    std::vector<BoundGraph> graphs = {};
    std::vector<HostSegment::Bound> segments = {};
    size_t step = 0;                    ///< that runs, or has failed; as many as there are steps for none
    size_t begun = 0;                   ///< steps that may have written something
    std::vector<uint8_t> changed = {};  ///< steps whose handles or variables are not those of their graph's last run; if there are graphs
  };
  /// `buffers` by slot; those of kind call may be null, and variables left out, until a run brings them.
  Binding bind(std::vector<Buffer*> buffers, std::span<const int64_t> variables = {}) const;
  /// Puts what a run brings into a binding: `buffers` by slot, of those of kind call, and `variables` in their order.
  void bring(Binding& binding, std::span<Buffer* const> buffers, std::span<const int64_t> variables) const;

  /// The first step that writes a slot for which `which` holds; as many as there are steps for none.
  size_t first_write(FunctionRef<bool(uint32_t slot)> which) const;

  /// Runs all. It can be cancelled before the step `lasting_from`. `look` gets the number of each slot that is looked at, once that is
  /// written and before anything of kind call or fixed is written after it. After an exception, Binding::begun says how far it came.
  void run(Binding& binding, size_t lasting_from, FunctionRef<void(size_t number)> look) const;

  /// Calls `f` with each slot that the first steps write, perhaps more than once.
  void for_each_written(size_t steps, FunctionRef<void(uint32_t slot)> f) const;

  /// What a run that threw was at.
  struct Failed {
    std::string kernel = {};  ///< empty for a copy, and before all steps
    uint32_t part = 0;        ///< RecordedCall::part
  };
  Failed failed(const Binding& binding) const;

 private:
  using Step = ListStep;
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

  void note_uses(const RecordedCall& call, const Program* program);
  void note_use(uint32_t slot, bool written);
  void check_reaches(const Step& step, uint32_t slot) const;
  void add_step(const RecordedCall& call, std::shared_ptr<const Program> program);
  void add_variable(Symbol name, const RecordedCall& call, Step& step);
  void note_async_writes();
  void place_looks();
  bool is_looked_before(size_t step) const;
  void find_segments();
  void find_exchanges();
  void run_exchange(Binding& binding, const Batch& batch) const;
  void note_values(Binding& binding, std::span<const int64_t> variables) const;
  void run_segment(Binding& binding, const HostSegment& segment, HostSegment::Bound& bound, size_t first, size_t end) const;
  bool writes(const Step& step, FunctionRef<bool(uint32_t slot)> which) const;
  void run_steps(Binding& binding, size_t lasting_from, FunctionRef<void(size_t number)> look) const;
  static void copy(const Step& step, const Binding& binding);
  void run_step(const Step& step, Binding& binding, bool timed) const;
  void run_batch(Binding& binding, const Batch& batch, BoundGraph& bound) const;
  static void make_graph(Binding& binding, std::span<const Step> steps, BoundGraph& bound);
  static std::span<void* const> handles_of(const Step& step, const Binding& binding);
  static std::span<const int64_t> variables_of(const Step& step, const Binding& binding);

  const RankPlan plan_;
  const std::vector<ListSlot> slots_;
  const ListVariables variables_;
  const std::vector<uint32_t> looked_at_;
  std::vector<Use> uses_;
  std::vector<Step> steps_;
  std::vector<uint32_t> look_order_;                        // numbers of slots that are looked at, as they are written
  std::vector<Look> looks_;                                 // in the order of their steps
  std::vector<Batch> batches_;                              // in the order of their steps
  std::vector<HostSegment> segments_;                       // likewise; no step is in a batch, too
  std::vector<Batch> exchanges_;                            // steps that are messages between ranks, at the same time; likewise
  std::vector<std::pair<Device*, uint32_t>> async_writes_;  // slots that kernels of asynchronous devices write, by device
  std::vector<uint32_t> handle_slots_;                      // of all launches after one another
  std::vector<Patch> handle_patches_, variable_patches_;
  std::vector<int64_t> variable_values_;
  size_t kernels_ = 0;
  std::vector<Known> known_;
  bool has_copies_ = false;
};

}  // namespace tinygrad::engine
