#pragma once
/// Programs that torch.export.save() wrote (.pt2), run without PyTorch.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/export.h>
#include <tinygrad/state.h>
#include <tinygrad/tensor.h>

namespace tinygrad::torch_export {

/// A tensor, or a number or text where the program takes one.
using Input = std::variant<Tensor, int64_t, double, bool, std::string>;

/// A size that a program says: a number, or an expression of sizes that may differ.
struct Size {
  std::string text = {};    ///< "3", "s0", "s0*2"
  int64_t number = -1;      ///< -1 for an expression
  std::string symbol = {};  ///< of an expression factor * symbol + offset; empty for others
  int64_t factor = 1, offset = 0;
};

/// What a program takes or gives at a place of its arguments or results.
struct ValueInfo {
  std::string name = {};            ///< in the containers of the arguments or results: "x", "batch.mask", "[0]"
  std::string type = {};            ///< "float32 (s0, 3)", "int", "bool", "None"; of a constant its value, too: "int = 2"
  std::optional<DType> dtype = {};  ///< of tensors
  std::vector<Size> shape = {};     ///< of tensors
  bool is_constant = false;         ///< of inputs: the program was exported with this value, and it is not passed
  /// Of an input whose elements select rows of a table: how many rows there are; -1 where nothing is known.
  int64_t index_bound = -1;
};

/// What a file says of a program.
struct Description {
  /// In the order in which a call takes them, those of containers one after another; constants are listed, but not passed.
  std::vector<ValueInfo> inputs = {}, outputs = {};
  /// Operators of the graph that are not supported, each once, and kinds of arguments that are not, with the operator that has them.
  std::vector<std::string> unsupported = {};
  /// All operators of the graph and how often each occurs.
  std::vector<std::pair<std::string, int64_t>> operators = {};
  /// The least and the greatest value of each symbol that sizes have.
  std::map<std::string, std::pair<int64_t, int64_t>> ranges = {};
};
/// Looks at the programs of an archive, by their names, without reading tensors. Throws IoError and FormatError.
TINYGRAD_EXPORT std::vector<std::pair<std::string, Description>> describe(const std::string& path);

struct LoadOptions {
  /// Where the program runs, whatever devices it was exported on; by default on the CPU where the file's tensors are.
  std::string device = {};
};

/// A program and its state. Copies share both.
class TINYGRAD_EXPORT Program {
 public:
  /// As in its Description.
  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  const std::vector<std::string>& unsupported() const;
  const std::map<std::string, std::pair<int64_t, int64_t>>& ranges() const;
  const std::vector<std::pair<std::string, int64_t>>& operators() const;
  /// Parameters, buffers and constants by their names in the module. They may be assigned to, or replaced by load_state_dict(), and a
  /// program that changes its buffers (or, in training, running statistics) assigns to these.
  const nn::state::StateDict& state() const;

  /// The results, in order: tensors, numbers as tensors of shape () (int64, float64, bool), None as an undefined tensor. Inputs that the
  /// program writes into are assigned to. Sizes that may differ are taken from the inputs, and the graph is made for them; a call inside of
  /// a jitted function is captured as any other function of tensors, unless the graph reads values.
  ///
  /// ValueError, before anything runs, for a program with unsupported operators (all are named), for another number of inputs, and for
  /// sizes out of the range that was exported; ShapeError and DTypeError for inputs of other shapes and dtypes.
  std::vector<Tensor> operator()(std::span<const Input> inputs) const;
  std::vector<Tensor> operator()(std::initializer_list<Input> inputs) const { return (*this)(std::span(inputs.begin(), inputs.size())); }
  std::vector<Tensor> operator()(std::span<const Tensor> inputs) const;
  /// The same, realized. The first call with inputs of these shapes and numbers makes the graph, the second captures it, and further ones
  /// replay its kernels; a program that reads values of tensors makes its graph in each call. Once state() was called, what is computed of
  /// the state alone is computed in each call. Of several threads one runs at a time.
  std::vector<Tensor> run(std::span<const Input> inputs) const;
  std::vector<Tensor> run(std::initializer_list<Input> inputs) const { return run(std::span(inputs.begin(), inputs.size())); }

  struct Impl;
  explicit Program(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Reads a program; tensors are memory of the mapped file. `model` is the name of one of several in the archive. Throws IoError;
/// FormatError, naming the file and the field, for a damaged archive, another version of the schema, effect tokens and objects of custom
/// classes.
TINYGRAD_EXPORT Program load(const std::string& path, const LoadOptions& options = {}, const std::string& model = {});
/// The same from a file's bytes, a vector of uint8.
TINYGRAD_EXPORT Program load(const Tensor& bytes, const LoadOptions& options = {}, const std::string& model = {});

}  // namespace tinygrad::torch_export
