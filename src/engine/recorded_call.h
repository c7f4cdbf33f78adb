#pragma once
/// What a captured call is made of.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/buffer.h"
#include "uop/uop.h"

namespace tinygrad::engine {

enum class SlotKind : uint8_t {
  call,       ///< memory that each call brings: arguments, results
  fixed,      ///< memory that is the same in each call
  lease,      ///< memory of its own in each lease, which the host fills before a run
  temporary,  ///< memory that the planner places
};

/// Something that captured calls read or write.
struct CapturedSlot {
  SlotKind kind = SlotKind::temporary;
  DType dtype = DType::void_;
  int64_t size = 0;  ///< elements
  Symbol device = {};
  BufferPtr buffer = {};  ///< of a fixed one
};

/// One call of a schedule: a kernel (SINK) or a COPY, the slots that are its arguments, and BINDs of the variables that have a value of its
/// own.
struct RecordedCall {
  UOp body;
  SmallVector<uint32_t, 8> slots;
  SmallVector<UOp, 1> bound = {};
  uint32_t part = 0;  ///< of what was recorded, for errors: a number that the caller gives
};

/// The value that one of these sources of a call binds to the variable.
std::optional<int64_t> value_bound_to(Symbol variable, std::span<const UOp> sources);

/// For each argument of the call, whether it is written.
std::vector<bool> written_arguments(const RecordedCall& call);

}  // namespace tinygrad::engine
