#pragma once
/// A graph, walked node by node in the order of the file: operators build tensors, and what is known on the host is computed there.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/proto.h"
#include "frontend/onnx/tensor_data.h"
#include "frontend/onnx/value.h"

namespace tinygrad::onnx {

using Results = std::vector<Value>;
class Call;
class Walk;

/// What an operator does: builds its outputs from a node's inputs and attributes.
using Operator = Results (*)(Call&);

/// What a model's file holds, with initializers as values.
struct Program {
  Files files;
  proto::Model model;
  std::map<std::string, const proto::Function*> functions;  ///< by function_key()
  /// Initializers of graphs and tensors of attributes, which are made once.
  std::map<const proto::Graph*, std::unordered_map<std::string, Value>> initializers;
  std::unordered_map<const char*, Value> constants;  ///< by where their messages begin
  bool is_exposed = false;                           ///< weights may have changed since the last walk

  const Value& constant(const proto::TensorProto& t);
  const std::unordered_map<std::string, Value>& initializers_of(const proto::Graph& g);
};

std::string function_key(std::string_view domain, std::string_view name, std::string_view overload);

/// Where the attributes that nodes of a function refer to, and the versions of operators, come from.
struct Frame {
  const proto::Opsets* opsets = nullptr;
  const std::vector<proto::Attribute>* attributes = nullptr;  ///< null outside of functions
};

/// The values by name in a graph, and around it.
struct Scope {
  const Scope* outer = nullptr;
  const Frame* frame = nullptr;
  std::unordered_map<std::string, Value> values = {};

  const Value* find(const std::string& name) const;
};

/// What one walk read of values that the host did not know: another walk over inputs of the same shapes need not read it again.
struct Reads {
  std::vector<HostArray> arrays = {};
  std::vector<size_t> guards = {};  ///< inputs whose values were read
  bool depends_on_data = false;     ///< whatever else was read that an input decides
};

class Walk {
 public:
  /// With `known`, values that an earlier walk read are taken from there. With `for_all_sizes`, nothing is decided by what symbolic sizes
  /// are now.
  Walk(Program& program, std::span<const Value> inputs, const Reads* known, bool for_all_sizes = false)
      : program_(program), inputs_(inputs), known_(known), for_all_sizes_(for_all_sizes) {}

  /// The outputs of the model's graph.
  Results run();
  /// The outputs of a graph in an attribute.
  Results run_graph(const proto::Graph& graph, std::span<const Value> inputs, const Scope& outer);
  /// The elements of a tensor, read from its device where they are not known.
  HostArray read(const Value& v);
  /// ValueError where these, with the nodes and iterations before them, are more than any model that ends soon has.
  void take_steps(int64_t count);

  Program& program() { return program_; }
  const Reads& reads() const { return reads_; }

 private:
  void run_nodes(const std::vector<proto::Node>& nodes, Scope& scope);
  void run_node(const proto::Node& node, Scope& scope);
  Results run_function(const proto::Function& f, const proto::Node& node, std::vector<Value> inputs);

  Program& program_;
  const std::span<const Value> inputs_;
  const Reads* known_;
  const bool for_all_sizes_;
  bool saw_from_input_ = false;  ///< a node or a graph took a value that depends on what the caller gives
  size_t next_read_ = 0;
  Reads reads_;
  int depth_ = 0;
  int64_t steps_ = 0;
};

/// A node's inputs and attributes, as its operator takes them.
class Call {
 public:
  Call(Walk& walk, const Scope& scope, const proto::Node& node, int64_t version, std::vector<Value> inputs)
      : walk_(walk), scope_(scope), node_(node), version_(version), inputs_(std::move(inputs)) {}

  const proto::Node& node() const { return node_; }
  /// Of the operator set of the node's domain.
  int64_t version() const { return version_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  /// Whether somebody uses this output.
  bool wants(size_t output) const { return output < node_.outputs.size() && !node_.outputs[output].empty(); }

  bool has(size_t input) const { return input < inputs_.size() && inputs_[input].present(); }
  /// Throws ValueError where there is none, as the others do.
  const Value& value(size_t input) const;
  const Tensor& tensor(size_t input) const;
  /// Not defined() where the input is absent.
  Tensor tensor_or_none(size_t input) const { return has(input) ? tensor(input) : Tensor(); }
  /// All of them.
  std::vector<Tensor> tensors() const;
  std::span<const Value> values() const { return inputs_; }
  ElementType type(size_t input) const { return value(input).element_type(); }
  Sizes shape(size_t input) const { return value(input).shape(); }
  size_t rank(size_t input) const;
  /// The elements on the host.
  HostArray host(size_t input) const { return walk_.read(value(input)); }
  HostArray host(const Value& v) const { return walk_.read(v); }
  /// Throws ValueError for floats.
  std::vector<int64_t> integers(size_t input) const;
  std::vector<double> numbers(size_t input) const { return host(input).numbers(); }
  int64_t integer(size_t input) const;
  double number(size_t input) const;

  bool has_attribute(std::string_view name) const { return node_.attribute(name) != nullptr; }
  int64_t attribute(std::string_view name, int64_t otherwise) const;
  int64_t attribute(std::string_view name, int otherwise) const { return attribute(name, int64_t(otherwise)); }
  double attribute(std::string_view name, double otherwise) const;
  /// ValueError for what is neither 0 nor 1.
  bool flag(std::string_view name, bool otherwise = false) const;
  /// A text of this list, whose first one is meant where there is none; ValueError for another one.
  std::string choice(std::string_view name, std::initializer_list<std::string_view> known) const;
  /// A number from `least` to `most`; ValueError for another one.
  int64_t attribute_within(std::string_view name, int64_t otherwise, int64_t least, int64_t most) const;
  std::string attribute(std::string_view name, const char* otherwise) const;
  std::vector<int64_t> attribute(std::string_view name, const std::vector<int64_t>& otherwise) const;
  std::vector<double> attribute(std::string_view name, const std::vector<double>& otherwise) const;
  std::vector<std::string> texts(std::string_view name) const;
  /// Throw ValueError where there is none.
  int64_t required_integer(std::string_view name) const;
  std::vector<int64_t> required_integers(std::string_view name) const;
  const Value& tensor_attribute(std::string_view name) const;
  const proto::Graph& graph(std::string_view name) const;
  ElementType type_attribute(std::string_view name, ElementType otherwise) const;

  /// Runs a graph of an attribute in the place of this node.
  Results run_graph(const proto::Graph& graph, std::span<const Value> inputs) const { return walk_.run_graph(graph, inputs, scope_); }

  void take_steps(int64_t count) const { walk_.take_steps(count); }

  Program& program() const { return walk_.program(); }
  /// The values around the node.
  const Scope& scope() const { return scope_; }

  /// Throws ValueError, naming the node.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const proto::Attribute* attribute_of(std::string_view name, proto::Attribute::Kind kind) const;

  Walk& walk_;
  const Scope& scope_;
  const proto::Node& node_;
  const int64_t version_;
  const std::vector<Value> inputs_;
};

/// The outputs of an operator on sizes that are known when kernels run, and of one that needs such sizes of its inputs; nothing for others.
/// ValueError where the outputs' sizes, or which numbers they are, depend on the values.
std::optional<Results> with_sizes(const Call& call);

/// The outputs of an operator on values that are known on the host, computed there; nothing for an operator, or for sizes, that are left to
/// devices.
std::optional<Results> fold(const Call& call);

}  // namespace tinygrad::onnx
