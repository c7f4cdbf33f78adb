#pragma once
/// Runs a graph: its nodes one after another, by the table of operators.

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "frontend/aten/aten.h"
#include "frontend/torch_export/schema.h"

namespace tinygrad::torch_export {

/// Memory as PyTorch has it, which several tensors may be views of. Its value is replaced when something is written.
struct Memory {
  Tensor value;
  uint64_t version = 0;
  bool may_be_shared = false;  ///< with other memory, as far as is known here: then nothing may be written
};
/// One step from a tensor to a view of it: an operator, the name of what it is a view of, its other arguments, and which of its results.
struct ViewStep {
  std::string target, parameter;
  aten::Arguments arguments;
  size_t place = 0;
};
/// A tensor of the graph: memory, or a view of it. In-place operators write into the memory, and every view of it sees that.
class View {
 public:
  View() = default;
  explicit View(Tensor value) : memory_(std::make_shared<Memory>(Memory{std::move(value)})) {}

  /// The elements as they are now.
  Tensor value(const aten::CallOptions& options);
  /// A view of this one by one more step, whose value now is known.
  View then(ViewStep step, Tensor value) const;
  /// Writes elements of the same shape.
  void write(const Tensor& value, const aten::CallOptions& options);

  const std::shared_ptr<Memory>& memory() const { return memory_; }
  /// The same view of other memory.
  Tensor replayed_on(const Tensor& base, const aten::CallOptions& options) const;

 private:
  std::shared_ptr<Memory> memory_;
  std::vector<ViewStep> steps_;
  Tensor seen_;  ///< the elements as they were at `seen_at_`
  uint64_t seen_at_ = 0;
};
using Slot = std::variant<View, aten::Value>;

/// The target of a node whose operator writes into its first argument, as the operator that gives what is to be written: "aten.add.Tensor"
/// for "aten.add_.Tensor". Empty for other targets.
std::string functional_target(const std::string& target);
bool is_supported(const Node& node);

class Walk {
 public:
  Walk(const Graph& graph, const aten::CallOptions& options) : graph_(graph), options_(options) {}

  void set(const Argument& input, Slot slot);
  /// ValueError, naming the node, for what its operator throws as such.
  void run();
  Slot slot(const Argument& a) const;
  aten::Value value(const Argument& a);

 private:
  void run_node(const Node& node);
  void run_operator(const Node& node);
  void run_in_place(const Node& node, const std::string& functional);
  bool run_batch_norm(const Node& node);
  bool run_higher_order(const Node& node);
  std::vector<Slot> run_inner(const Graph& inner, const std::vector<Slot>& inputs);
  void run_cond(const Node& node);
  void run_while(const Node& node);
  void run_map(const Node& node);
  aten::Arguments arguments(const Node& node);
  void bind(const Node& node, const std::vector<aten::Value>& results);
  void bind_views(const Node& node, const std::vector<aten::Value>& results);
  void forbid_writes(const Argument& a);
  void bind_all(const Node& node, const std::vector<Slot>& results);
  View& view_of(const Node& node, std::string_view parameter);
  const TensorMeta* meta_of(const Node& node, std::string_view parameter) const;
  void check_strides(const Node& node) const;

  const Graph& graph_;
  const aten::CallOptions& options_;
  std::map<std::string, Slot, std::less<>> slots_;
};

}  // namespace tinygrad::torch_export
