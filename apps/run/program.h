#pragma once
/// Model files that hold a graph, as `tg run` sees them whatever their format.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tinygrad/tensor.h>

namespace tinygrad::apps {

/// A size that a file declares: a number, or factor * name + offset for a name whose number the caller chooses, or neither.
struct DeclaredSize {
  int64_t size = -1;
  std::string name = {};
  int64_t factor = 1, offset = 0;
  int64_t least = 1;  ///< that the name may be
};

/// What a file says of an input or output.
struct Port {
  std::string name = {}, type = {};  ///< "float32 (batch, 3, 224, 224)"
  std::optional<DType> dtype = {};   ///< nothing where no tensor of a dtype goes in
  bool has_shape = false, is_optional = false;
  std::vector<DeclaredSize> shape = {};
  int64_t index_bound = -1;  ///< what the elements are less than because they select something; -1 where nothing is known
};

/// Of what a model gives, one tensor of numbers or of texts.
struct Result {
  std::string name = {}, type = {};
  Sizes shape = {};
  std::optional<Tensor> tensor = {};
  std::vector<std::string> texts = {};  ///< where there is no tensor
  bool has_fixed_row = false;           ///< the file says how many elements the last axis has that is not 1
};

/// "float32".
std::string text_of(DType dtype);
/// Whether a shape says how many elements its last axis has that is not 1.
bool has_fixed_row(const std::vector<DeclaredSize>& shape);

class Program {
 public:
  virtual ~Program() = default;
  virtual std::string_view format() const = 0;
  virtual const std::vector<Port>& inputs() const = 0;
  virtual const std::vector<Port>& outputs() const = 0;
  /// The outputs, realized; what holds several tensors as one for each. Later calls replay what earlier ones captured.
  virtual std::vector<Result> run(const std::map<std::string, Tensor>& inputs) = 0;
};

/// Throws IoError, FormatError, ValueError for files without a graph, and for unsupported operators an error with a line for each.
std::unique_ptr<Program> open_program(const std::string& path);
/// The same for ONNX, and for what torch.export.save() writes.
std::unique_ptr<Program> open_onnx(const std::string& path);
std::unique_ptr<Program> open_exported(const std::string& path);

}  // namespace tinygrad::apps
