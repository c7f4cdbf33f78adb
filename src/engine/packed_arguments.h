#pragma once
/// Weights as the kernels of a captured call read them.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/options.h"
#include "codegen/opt/pack_constants.h"
#include "engine/recorded_call.h"
#include "program/program.h"

namespace tinygrad::engine {

/// Copies of arguments that no call writes, each packed as its kernel needs it, so that the kernel does not copy tiles of it in every call.
/// They are made before a run, and again when the argument was written since. All in the process take Options::pack_memory at most.
class PackedArguments {
 public:
  PackedArguments() = default;
  ~PackedArguments();
  PackedArguments(const PackedArguments&) = delete;
  PackedArguments& operator=(const PackedArguments&) = delete;

  /// Has kernels read copies where that pays, for which there is memory. The slots of copies are added behind the others.
  void pack(std::span<RecordedCall> calls, std::vector<CapturedSlot>& slots, const Options& options);
  /// The slots that there are copies of.
  std::vector<uint32_t> sources() const;
  /// Makes copies of what was written since it was copied.
  void refresh();

 private:
  struct Copy {
    UOp kernel = {};
    Device* device = nullptr;
    uint32_t from = 0, to = 0;  ///< slots
    BufferPtr source = {}, packed = {};
    std::shared_ptr<const Program> program = nullptr;
    uint64_t content = 0;  ///< of the source, when it was copied last; 0: to be copied before each run
  };

  /// Has the call read copies of those arguments; false, with nothing changed, if there is no memory.
  bool add_copies(std::span<const codegen::PackedArgument> arguments, RecordedCall& call, std::vector<CapturedSlot>& slots, int64_t limit);

  std::vector<Copy> copies_;
  std::mutex mutex_;
  int64_t bytes_ = 0;
};

}  // namespace tinygrad::engine
