#pragma once
/// What ranks do together: calls on devices of one of them, and memory that goes from one to another.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "engine/list_step.h"
#include "engine/recorded_call.h"

namespace tinygrad::engine {

/// What a rank does of a call.
enum class RankPart : uint8_t {
  here,       ///< all of it
  elsewhere,  ///< nothing
  exchange,   ///< it sends or receives memory
};
RankPart rank_part(const RecordedCall& call, std::span<const ListSlot> slots);

/// The calls of a list as all ranks have them, to find out where they differ before anything is sent.
class RankPlan {
 public:
  /// Empty if no call is on a device of one rank.
  static RankPlan of(std::span<const RecordedCall> calls, std::span<const ListSlot> slots);

  bool empty() const { return keys_.empty(); }
  /// What messages of a run with these values of its variables are marked with (comm::Group::exchange).
  int kind(std::span<const int64_t> variables) const;
  /// Compares it with that of the other ranks the first time that the process has it. Throws CommError, on all of them, that shows the
  /// first call that is not the same.
  void compare(const Options& options) const;

 private:
  void compare_calls(const Options& options) const;
  std::string describe(size_t call) const;

  std::vector<uint64_t> keys_;      // of the calls
  std::vector<std::string> texts_;  // names of their kernels, or where they copy
  uint64_t key_ = 0;
};

/// The bytes of a copy between ranks, from the one and to the other part of memory.
struct RankCopy {
  Buffer *to = nullptr, *from = nullptr;
  schedule::CopyRange range;
};
/// Makes copies as if one after another, and at the same time where their memory allows, as `rank_part` says is to be done here of each.
void exchange(std::span<const RankCopy> copies, int kind, const Options& options);

}  // namespace tinygrad::engine
