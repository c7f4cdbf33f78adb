#pragma once
/// Steps of a list, one after another, that several devices of the host run at the same time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "device/buffer.h"
#include "device/host_device.h"
#include "engine/lanes.h"
#include "engine/list_step.h"

namespace tinygrad::engine {

class HostSegment {
 public:
  /// The numbers of its steps are those of the list.
  size_t first() const { return first_; }
  size_t end() const { return first_ + steps_.size(); }

  /// The runs of steps that work on several devices of the host and on no other, cut where `is_cut_before` a step. They refer to what they
  /// are given.
  static std::vector<HostSegment> find(std::span<const ListStep> steps, std::span<const uint32_t> handle_slots,
                                       std::span<const ListSlot> slots, FunctionRef<bool(size_t step)> is_cut_before);

  /// What is launched with: buffers by slot, handles and variables of all launches of the list after one another.
  struct Arguments {
    std::span<Buffer* const> buffers;
    std::span<void* const> handles;
    std::span<const int64_t> variables;
  };
  /// Which step waits for which, with the memory of a binding.
  struct Bound {
    bool moved = true;  ///< memory is not where it was in the last run
    std::optional<Lanes> lanes = {};
    std::vector<MemoryUse> fixed = {};  ///< memory that is the same in each run, as runs of bytes that do not overlap
    bool is_apart = false;              ///< what each run brings overlaps nothing else that somebody writes
  };
  /// Runs the steps from `first` to `end`. If one throws, `failed` is its number. Can be cancelled between steps.
  void run(Bound& bound, const Arguments& arguments, size_t first, size_t end, size_t& failed) const;
  /// The same, one step after another, for those that are watched: `launch` is called for launches.
  void run_in_order(const Arguments& arguments, size_t first, size_t end, size_t& failed,
                    FunctionRef<void(const ListStep& step)> launch) const;

 private:
  HostSegment(std::span<const ListStep> steps, size_t first, std::span<const uint32_t> handle_slots, std::span<const ListSlot> slots);

  const ListStep& step(size_t number) const { return steps_[number - first_]; }
  SmallVector<MemoryUse, 8> uses_of(const ListStep& step, const Arguments& arguments) const;
  bool brings_apart(const Bound& bound, const Arguments& arguments) const;
  void plan(Bound& bound, const Arguments& arguments) const;
  void drain() const;
  void check_copied(const Arguments& arguments, size_t first, size_t end) const;
  void note_copied(const Arguments& arguments, size_t first, size_t end) const;

  size_t first_;
  std::span<const ListStep> steps_;
  std::span<const uint32_t> handle_slots_;
  std::span<const ListSlot> slots_;
  std::vector<HostDevice*> devices_;
  std::vector<uint32_t> lane_of_;  // of each step, as a number in devices_
  struct Slot {
    uint32_t slot = 0;
    bool is_written = false;
  };
  std::vector<Slot> fixed_, brought_;  // slots that the steps use, by whether each run brings them
};

}  // namespace tinygrad::engine
