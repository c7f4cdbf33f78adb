#pragma once
/// Programs that torch.export.save() wrote (.pt2), run without PyTorch.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/export.h>
#include <tinygrad/state.h>
#include <tinygrad/tensor.h>

namespace tinygrad::torch_export {

/// A tensor, or a number or text where the program takes one.
using Input = std::variant<Tensor, int64_t, double, bool, std::string>;

/// What a program takes or gives at a place of its arguments or results.
struct ValueInfo {
  std::string name = {};                ///< in the containers of the arguments or results: "x", "batch.mask", "[0]"
  std::string type = {};                ///< "float32", "int", "bool", "None"; of a constant its value, too: "int = 2"
  std::optional<DType> dtype = {};      ///< of tensors
  std::vector<std::string> shape = {};  ///< of tensors: numbers, and expressions of sizes that may differ: "s0", "s0*2"
  bool is_constant = false;             ///< of inputs: the program was exported with this value, and it is not passed
};

struct LoadOptions {
  /// Where the program runs, whatever devices it was exported on; by default on the CPU where the file's tensors are.
  std::string device = {};
};

/// A program and its state. Copies share both.
class TINYGRAD_EXPORT Program {
 public:
  /// In the order in which a call takes them, those of containers one after another; constants are listed, but not passed.
  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  /// Operators of the graph that are not supported, each once, and kinds of arguments that are not, with the operator that has them.
  const std::vector<std::string>& unsupported() const;
  /// All operators of the graph and how often each occurs.
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
