#pragma once
/// What a thread does while a jitted function runs: the schedules, and where their memory comes from.

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "device/buffer.h"
#include "schedule/schedule.h"
#include "shape/sint.h"
#include "tensor/cell.h"
#include "tensor/observer.h"
#include "tensor/origin.h"

namespace tinygrad::jitted {

/// Where memory that recorded schedules use comes from.
enum class Origin : uint8_t {
  argument,  ///< of the call; `number` tells which
  random,    ///< where a draw begins; `number` tells which
  upload,    ///< values from the host
  made,      ///< by a realize of the call
  state,     ///< it was there before
};

struct RecordedBuffer {
  Origin origin = Origin::state;
  size_t number = 0;
  uint64_t id = 0;  ///< of the BUFFER
  int64_t size = 0;
  DType dtype = DType::void_;
  Symbol device = {};
  BufferPtr buffer = {};  ///< of a state or an upload
  ContentKey content = {};
  std::vector<std::byte> bytes = {};  ///< of an upload
};

/// One schedule that ran. `graph` is what it was made from, memory as PARAMs numbered like Recording::buffers.
struct RecordedSchedule {
  UOp graph;
  std::shared_ptr<const schedule::Plan> plan;
  std::vector<uint32_t> inputs;  ///< places in Recording::buffers
  tensor::Computed computed;     ///< for errors
};

struct RecordedDraw {
  int64_t words = 0;
  Symbol device = {};
};

/// What one call did.
struct Recording {
  std::vector<RecordedBuffer> buffers;  ///< in the order of first use
  std::vector<RecordedSchedule> schedules;
  std::vector<RecordedDraw> draws;
  std::map<Symbol, int64_t> variables;  ///< that are bound by the function, not by the arguments
  std::string host_use;                 ///< what it asked the host for that a replay could not: "item()"; empty if nothing
  /// Keeps only what is compared.
  void drop_memory();
};

/// Says how a call differs from another, for a person; empty if they did the same.
std::string difference(const Recording& before, const Recording& now);

/// An argument of a call as its recording knows it.
struct RecordedArgument {
  UOp buffer;            ///< the BUFFER or MSTACK that the function sees; null for an empty tensor
  UOp original;          ///< the caller's, which has the same memory
  UOp copied_from = {};  ///< where the original is a copy of a part of the caller's memory: that memory
};

/// Records what the thread does until it goes out of scope.
class Recorder final : public tensor::Observer {
 public:
  /// `variables` get their values from the arguments. A strict recorder throws JitError for what a replay could not do.
  Recorder(std::vector<RecordedArgument> arguments, std::vector<Symbol> variables, bool strict);

  void made(const UOp& buffer) override;
  void uploaded(const UOp& buffer, std::span<const std::byte> bytes) override;
  void drew(const UOp& buffer, int64_t words) override;
  void created(detail::TensorCell& cell) override;
  void changed(detail::TensorCell& cell) override;
  void reads(detail::TensorCell& cell) override;
  void stores(uint64_t id) override { stores_.insert(id); }
  void used_host(const char* what, const char* instead) override;
  /// Throws JitError for a graph of stores that cannot be captured.
  void check(const UOp& sink) override;
  void ran(const UOp& sink, const schedule::Schedule& schedule) override;
  void looks_at(tensor::IndexCheck check) override { checks_.push_back(std::move(check)); }
  bool is_outside(const detail::TensorCell& cell) const override { return !changed_.contains(cell.number); }
  bool is_outside(const StoreArg& store) const override { return !stores_.contains(store.id); }
  UOp original_of(const UOp& buffer) const override;

  bool made_in_call(uint64_t buffer_id) const { return made_.contains(buffer_id); }
  /// Whether a store of the call writes into it.
  bool stored_to(uint64_t buffer_id) const { return stored_to_.contains(buffer_id); }
  /// Cells alive that the call has made or changed, in their order.
  std::vector<detail::CellPtr> changed_cells() const;
  /// Cells alive that were there before, and that the call has read.
  std::vector<detail::CellPtr> read_cells() const;
  /// The place of a BUFFER in the recording.
  uint32_t place_of(const UOp& buffer);
  const std::vector<RecordedArgument>& arguments() const { return arguments_; }
  const std::vector<Symbol>& variables() const { return variables_; }
  const std::vector<tensor::IndexCheck>& checks() const { return checks_; }
  const SizeAssumptions& assumptions() const { return assumptions_; }
  Recording& recording() { return recording_; }

 private:
  struct Access {
    uint64_t first_id = 0;
    bool several = false, written = false;
  };

  const std::vector<RecordedArgument> arguments_;
  const std::vector<Symbol> variables_;
  const bool strict_;
  Recording recording_;
  std::vector<tensor::IndexCheck> checks_;
  const SizeAssumptions assumptions_;
  std::unordered_set<uint64_t> made_, stored_to_, stores_;
  std::unordered_map<uint64_t, RecordedBuffer> known_;  // uploads, draws and arguments, by the id of their BUFFER
  std::unordered_map<uint64_t, uint32_t> places_;
  std::unordered_map<const Buffer*, Access> accesses_;
  using Cells = std::map<uint64_t, std::weak_ptr<detail::TensorCell>>;
  static std::vector<detail::CellPtr> alive(const Cells& cells);
  std::unordered_set<uint64_t> created_;  // numbers of cells
  Cells changed_, read_;
};

}  // namespace tinygrad::jitted
