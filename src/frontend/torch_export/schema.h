#pragma once
/// An exported program as its JSON says (torch/_export/serde/schema.py, version 8).

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "frontend/aten/value.h"
#include "frontend/torch_export/expression.h"
#include "frontend/torch_export/json_field.h"

namespace tinygrad::torch_export {

struct TensorMeta {
  std::string type = {};            ///< "float32", "complex64"
  std::optional<DType> dtype = {};  ///< nothing where there is none
  std::vector<Expression> sizes = {}, strides = {};
  Expression offset = {};
  std::string device = {};
  bool is_strided = true;

  /// Whether elements lie row-major from the beginning of their memory, which sizes that are not known leave open.
  bool is_plain() const;
};
TensorMeta parse_tensor_meta(const Field& field);

struct Graph;
/// A value of another node or input.
struct Name {
  std::string text;
};
/// A kind of argument that is listed, not run.
struct Foreign {
  std::string what;
};
struct Argument {
  std::variant<aten::Value, Name, std::vector<Argument>, std::shared_ptr<const Graph>, Foreign> held = {};

  const Name* name() const { return std::get_if<Name>(&held); }
  const std::vector<Argument>* list() const { return std::get_if<std::vector<Argument>>(&held); }
  const aten::Value* constant() const { return std::get_if<aten::Value>(&held); }
  const std::shared_ptr<const Graph>* graph() const { return std::get_if<std::shared_ptr<const Graph>>(&held); }
  const Foreign* foreign() const { return std::get_if<Foreign>(&held); }
};

struct Node {
  std::string target = {};  ///< "aten.add.Tensor", "higher_order.cond", "_operator.mul"
  std::string path = {};    ///< in the document
  std::vector<std::pair<std::string, Argument>> inputs = {};
  std::vector<Argument> outputs = {};
};
struct Graph {
  std::vector<Argument> inputs = {}, outputs = {};
  std::vector<Node> nodes = {};
  std::map<std::string, TensorMeta> tensors = {};
  std::map<std::string, DType> numbers = {};  ///< what symbolic numbers are: int64, float64, bool
};

struct InputSpec {
  enum class Kind : uint8_t { user, parameter, buffer, constant_tensor, constant };
  Kind kind = Kind::user;
  Argument argument = {};   ///< a name in the graph, or a constant
  std::string target = {};  ///< of parameters, buffers and constants: the name in the module

  /// Whether it is a tensor of the module, and not passed by the caller.
  bool is_state() const { return kind == Kind::parameter || kind == Kind::buffer || kind == Kind::constant_tensor; }
};
struct OutputSpec {
  enum class Kind : uint8_t { user, loss, buffer_mutation, parameter_mutation, input_mutation };
  Kind kind = Kind::user;
  Argument argument = {};
  std::string target = {};  ///< of mutations: what is written
};
struct Range {
  std::optional<int64_t> min = {}, max = {};
};

struct ExportedProgram {
  Graph graph = {};
  std::vector<InputSpec> inputs = {};
  std::vector<OutputSpec> outputs = {};
  std::map<std::string, Range> ranges = {};
  std::vector<std::string> input_paths = {}, output_paths = {};  ///< in the arguments and results of the module
  std::string torch_version = {}, schema_version = {};
};

/// FormatError, naming the field, for what does not follow the schema, another major version, values that nothing gives, tokens and
/// objects of custom classes.
ExportedProgram parse_program(const Field& root);

}  // namespace tinygrad::torch_export
