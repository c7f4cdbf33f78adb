#pragma once
/// One captured call of a jitted function: what it takes, what it runs, what it returns.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tinygrad/jit.h>

#include "engine/capture.h"
#include "jit/recorder.h"
#include "shape/shape.h"
#include "tensor/claims.h"

namespace tinygrad::jitted {

/// Arguments of a call with memory that can be bound.
struct CallArguments {
  struct Value {
    UOp node;              ///< a view of `buffer`; null for no tensor
    UOp buffer;            ///< a BUFFER or MSTACK; null for an empty tensor
    UOp copied_from = {};  ///< the memory of which a part was copied to `buffer`; null where that is the caller's memory
    bool is_param = true;
  };
  std::vector<Value> values;
  std::vector<std::pair<Symbol, int64_t>> variables;  ///< by name
  std::string layout;
};

/// What calls that one capture serves have in common.
struct CallForm {
  struct Value {
    UOp view;  ///< with a PARAM as memory and variables without values; null for a whole buffer
    Shape shape;
    DType dtype = DType::void_;
    Symbol device = {};
    bool operator==(const Value&) const = default;
  };
  std::vector<Value> values;
  bool checks_indices = false;  ///< CHECK_OOB
  bool operator==(const CallForm&) const = default;
};
CallForm form_of(const CallArguments& arguments);

/// Computes the arguments, and copies those that are a part of a tensor's memory.
CallArguments prepare_arguments(const detail::JitArguments& arguments);

class CapturedCall {
 public:
  /// What `recorder` has recorded of a call with these arguments that gave `results`. Throws JitError if it cannot be replayed.
  /// Pruned, kernels that do the same in each call run now and never again.
  CapturedCall(Recorder& recorder, const CallArguments& arguments, const detail::JitResults& results, const void* result_type, bool prune);
  ~CapturedCall();
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;

  /// Throws JitError if the numbers and containers among the arguments, or the options, are others than in the captured call.
  void check_surroundings(const CallArguments& arguments, const void* result_type) const;
  /// Throws JitError if the call is not one that this can replay.
  void check(const CallArguments& arguments, const void* result_type) const;
  /// False if a tensor that the function finds outside of its arguments was replaced by another since, or is another value.
  bool is_current() const;
  detail::JitResults replay(const CallArguments& arguments);
  void free_intermediates() { capture_->free_leases(); }
  const Recording& recording() const { return recording_; }
  /// Whether it changes memory beside that of its results.
  bool writes_any() const { return writes_any_; }
  const std::string& layout() const { return layout_; }
  const std::shared_ptr<const void>& skeleton() const { return skeleton_; }

  // Files (captured_file.cpp).
  void save(const std::string& path) const;
  /// FormatError for what save() would not have written.
  static std::shared_ptr<CapturedCall> load(const std::string& path);
  /// A call of one that was loaded. Throws JitError for arguments that do not fit.
  detail::JitResults call_loaded(const CallArguments& arguments);

 private:
  CapturedCall() = default;
  struct Argument {
    std::vector<size_t> slots;  ///< of its memory, part by part
    bool defined = false;
  };
  struct Result {
    enum class Kind : uint8_t { undefined, empty, argument, fixed, made } kind = Kind::undefined;
    size_t number = 0;          ///< argument
    std::vector<size_t> slots;  ///< of its memory, part by part
    Devices parts = {};         ///< of memory on several devices
    UOp form;                   ///< as that of an argument
    Shape shape;
    DType dtype = DType::void_;
    Symbol device = {};
    std::vector<uint64_t> ids;  ///< of a fixed one, part by part
    bool is_param = true;
    bool weak = false;
  };
  /// A draw of random words, and the slot with the place where it begins, if a kernel reads it.
  struct Draw {
    int64_t words;
    std::optional<size_t> slot;
  };
  /// A tensor that the function finds outside of its arguments: a view of a BUFFER, or a value without memory that must stay as it is.
  struct Found {
    std::weak_ptr<detail::TensorCell> cell;
    std::optional<uint64_t> buffer_id;  ///< of its first part
    uint64_t version;
    bool is_same() const;
  };
  /// What is read of a run, in a slot of kind lease.
  struct Check {
    uint32_t slot;
    tensor::IndexCheck what;
  };
  class Builder;
  class Writer;
  class Reader;

  bool is_written(const Argument& a) const;
  void check_argument(size_t i, const CallArguments::Value& value) const;
  void check_aliases(const CallArguments& arguments) const;
  void check_limits(const CallArguments& arguments) const;
  void check_readable(const CallArguments& arguments) const;
  /// Of an index expression; null if a variable in it is not one of the call.
  std::optional<int64_t> value_of(const UOp& expression, const CallArguments& arguments) const;
  void find_uses();
  /// What a replay does with claims on what it writes. If it throws, `failed` says where.
  detail::JitResults run(const CallArguments& arguments, engine::CommandList::Failed& failed);
  [[noreturn]] void rethrow_failed(const engine::CommandList::Failed& failed) const;
  std::vector<uint32_t> looked_at() const;
  void look(const Check& check, Buffer& largest, const CallArguments& arguments) const;
  UOp form_of(const UOp& node, const UOp& buffer) const;
  UOp node_of(const UOp& form, const UOp& buffer, const Shape& shape, const CallArguments& arguments) const;
  Tensor result(const Result& r, std::span<const BufferPtr> made, const CallArguments& arguments) const;

  std::shared_ptr<const Options> options_;
  std::string layout_;
  const void* result_type_ = nullptr;
  CallForm form_;
  std::vector<Symbol> variables_;
  std::vector<Argument> arguments_;
  std::vector<Result> results_;
  std::shared_ptr<const void> skeleton_;
  std::vector<Draw> draws_;
  std::vector<Found> found_;
  std::vector<Check> checks_;
  Recording recording_;
  std::vector<engine::CapturedSlot> slots_;
  std::vector<engine::RecordedCall> calls_;
  std::vector<std::pair<Symbol, std::optional<int64_t>>> bound_;  ///< all variables; those that a call brings without a value
  std::vector<UOp> limits_;  ///< index expressions that must not be negative, or views leave their axes and sizes do not fit
  std::map<Symbol, std::pair<int64_t, int64_t>> variable_bounds_;  ///< of one that was loaded
  std::unique_ptr<engine::Capture> capture_;
  std::vector<size_t> made_slots_, state_slots_, fixed_slots_;
  tensor::Claims uses_;  // the memory that is the same in each call
  bool writes_any_ = false;
};

}  // namespace tinygrad::jitted
