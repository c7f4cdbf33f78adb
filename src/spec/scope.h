#pragma once
/// The evaluator proper: runs the nodes of one closed scope (the graph given, the body of a CALL, the step of a general REDUCE).

#include <map>
#include <set>
#include <vector>

#include "spec/evaluate.h"
#include "spec/memory.h"
#include "spec/plan.h"

namespace tinygrad::spec {

/// An INDEX: a place that a LOAD reads or a STORE writes.
struct Address {
  std::shared_ptr<const Memory> memory = {};  ///< null: elements of a value
  Value from = {};
  Value index = {}, valid = {};
  int32_t width = 1;
  DType dtype = DType::void_;  ///< of what is loaded and stored, where the memory is an image; else void
};

/// The same places with an index for each element of a run, where `gate` has a value for each.
Address each_element(const Address& a, const Value& gate);

/// What a node stands for. Any of these, where they apply.
struct Result {
  Value value = {};
  std::shared_ptr<const Memory> memory = {};
  std::shared_ptr<const Address> address = {};
  std::shared_ptr<const Effects> effects = {};
  std::shared_ptr<const std::vector<Result>> tuple = {};
};

/// What a scope is run with.
struct Environment {
  std::map<int32_t, Result> params = {};
  std::map<uint64_t, Value> buffers = {};
  std::map<Symbol, int64_t> variables = {};
};

/// What all scopes of one evaluation share.
class Evaluator {
 public:
  explicit Evaluator(const EvalOptions& o) : exact(o.exact) {}

  const bool exact;
  double largest = 0;

  /// The dtype that values of `d` are kept in.
  DType storage(DType d) const { return exact && is_float(d) ? DType::float64 : d; }
  void note(const Value& v);

  /// A named axis for an open RANGE or SPECIAL; `extent`, if given, is its size at each point of outer axes, at most `size`.
  uint32_t new_axis(const UOp& node, int64_t size, Value extent);
  const UOp& axis_node(uint32_t axis) const { return axes_[axis].node; }
  /// True at the points of these axes that exist; null if all do.
  Value existing(const AxisIds& axes) const;

 private:
  struct Axis {
    UOp node;
    int64_t size;
    Value extent;
  };
  std::vector<Axis> axes_;
};

class Scope {
 public:
  Scope(Evaluator& ev, std::span<const UOp> roots);

  /// Runs everything; results of an earlier run are forgotten.
  void run(const Environment& env);
  const Result& result(const UOp& u) const { return *results_.find(u); }
  /// The value of a node, read from memory if need be.
  Value value(const UOp& u) const;
  /// The first version of a BUFFER or PARAM.
  Memory memory(const UOp& base) const { return *memory_node(base).memory; }
  /// Writes to memory by any effect of the last run, in an order they may be made in.
  std::vector<WritesPtr> writes() const;

 private:
  Result compute(const UOp& u);
  Value read(const UOp& u, const Result& r) const;
  int64_t number(const UOp& u) const;

  // Values (scope.cpp).
  Result constant_node(const UOp& u) const;
  Result variable_node(const UOp& u) const;
  Result memory_node(const UOp& u) const;
  Result movement_node(const UOp& u) const;
  Result alu_node(const UOp& u) const;
  Result axis_node(const UOp& u);
  Result reduce_node(const UOp& u);
  Result stage_node(const UOp& u) const;
  Result stack_node(const UOp& u) const;
  Result index_node(const UOp& u) const;
  Result texel_node(const UOp& u) const;
  Result load_node(const UOp& u) const;
  Value loaded(const UOp& u, const UOp& from, const UOp& instead, const UOp& gate) const;
  Value bitcast(const UOp& u) const;
  /// The axes that RANGEs are evaluated along, and their sizes.
  void closed_axes(std::span<const UOp> ranges, AxisIds& axes, Sizes& sizes) const;

  // General reductions (scope_reduce.cpp).
  Result general_reduce_node(const UOp& u);

  // Effects (scope_effects.cpp).
  Result after_node(const UOp& u);
  Result stored(const UOp& u, const Value& x, const UOp& if_true) const;
  Result fetch_node(const UOp& u) const;
  Result group_node(const UOp& u) const;
  Result barrier_node(const UOp& u) const;
  Result end_node(const UOp& u) const;
  Result loop_node(const UOp& u, const Loop& loop);
  Result call_node(const UOp& u);
  Result linear_node(const UOp& u) const;
  std::shared_ptr<const Memory> with_effects(const std::shared_ptr<const Memory>& m, std::span<const UOp> effects) const;
  void append_effects(Effects& to, const UOp& u) const;
  void collect(const Effects& effects);

  struct LoopState;
  void loop_iteration(LoopState& state, const Loop& loop);
  Effects call_effects(const UOp& call, std::span<const WritesPtr> writes) const;

  Evaluator& ev_;
  std::vector<UOp> roots_;
  Plan plan_;
  const Environment* env_ = nullptr;
  NodeMap<Result> results_;
  std::vector<UOps> last_uses_;        ///< by place in the order: what is not needed afterwards
  std::map<int32_t, UOp> param_base_;  ///< one node stands for all PARAMs of a slot
  // Writes that AFTERs built upon, each once.
  std::vector<WritesPtr> collected_;
  std::set<const Writes*> known_;
};

}  // namespace tinygrad::spec
