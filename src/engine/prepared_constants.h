#pragma once
/// What a captured call computes of weights alone, and weights as its kernels read them.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/options.h"
#include "codegen/choose/pack_constants.h"
#include "engine/recorded_call.h"
#include "program/program.h"

namespace tinygrad::engine {

/// Kernels that run before a call, and again only when what they read was written since: those of the call whose arguments are all
/// constant, and those that pack a constant as another kernel needs it. Constant is what no call writes. All in the process keep
/// Options::pack_memory at most.
class PreparedConstants {
 public:
  PreparedConstants() = default;
  ~PreparedConstants();
  PreparedConstants(const PreparedConstants&) = delete;
  PreparedConstants& operator=(const PreparedConstants&) = delete;

  /// Takes such kernels out of the calls, and has others read packed copies where that pays, for which there is memory. Temporaries become
  /// fixed; the slots of copies are added behind the others.
  void prepare(std::vector<RecordedCall>& calls, std::vector<CapturedSlot>& slots, const Options& options);
  /// The slots that are read.
  std::vector<uint32_t> sources() const;
  /// Runs what has to be run. If that fails, the next time runs the rest.
  void refresh();

 private:
  struct Argument {
    uint32_t slot = 0;
    BufferPtr buffer = {};
    bool written = false;
    uint64_t content = 0;     ///< of what is read, when it was read last; 0: it may change unseen
    int writer = -1;          ///< the number of the step that writes what is read, if one does
    bool is_passing = false;  ///< freed after the steps that read it
  };
  struct Step {
    UOp kernel = {};
    Device* device = nullptr;
    std::vector<Argument> arguments = {};
    std::shared_ptr<const Program> program = nullptr;
    bool is_due = true;

    /// True if something that it reads was written since.
    bool is_outdated() const;
    void run();
  };

  void take_out(std::vector<RecordedCall>& calls, std::vector<CapturedSlot>& slots, int64_t limit);
  void pack(std::span<RecordedCall> calls, std::vector<CapturedSlot>& slots, const Options& options);
  /// Has the call read copies of those arguments; false, with nothing changed, if there is no memory.
  bool add_copies(std::span<const codegen::PackedArgument> arguments, RecordedCall& call, std::vector<CapturedSlot>& slots, int64_t limit);
  /// Adds steps with memory for what they write; false, with nothing changed, if there is none.
  bool add(std::vector<Step> steps, int64_t limit);
  /// Has steps know which others write what they read, and what only later steps read freed after them.
  void connect(std::span<const RecordedCall> calls, std::span<const CapturedSlot> slots);
  void find_due();

  std::vector<Step> steps_;
  std::mutex mutex_;
  int64_t bytes_ = 0;
};

}  // namespace tinygrad::engine
