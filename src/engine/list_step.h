#pragma once
/// What lists of commands are made of.

#include <cstdint>
#include <memory>

#include "device/device.h"
#include "engine/recorded_call.h"
#include "kernel/kernel_info.h"
#include "program/program.h"
#include "schedule/kernel_calls.h"

namespace tinygrad::engine {

/// The memory that calls name by a number.
struct ListSlot {
  Device* device = nullptr;
  SlotKind kind = SlotKind::temporary;
};

/// A launch with all that can be known before there is memory; a copy if there is no kernel.
struct ListStep {
  std::shared_ptr<const Program> program;
  Kernel* kernel = nullptr;
  Device* device = nullptr;  ///< of a launch
  uint32_t first_handle = 0, handle_count = 0;
  uint32_t first_variable = 0, variable_count = 0;
  bool dims_known = true;
  LaunchDims dims;
  uint32_t to = 0, from = 0;  ///< slots of a copy
  schedule::CopyRange range;  ///< of it
  bool is_exchange = false;   ///< a copy between ranks
  uint32_t part = 0;          ///< RecordedCall::part
};

}  // namespace tinygrad::engine
