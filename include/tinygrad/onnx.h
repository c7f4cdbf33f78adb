#pragma once
/// ONNX models (https://onnx.ai): read, and run as programs of tensors.
///
/// Files are mapped: of a weight only what is used is read. Whatever a file holds, load() gives a model or throws: IoError for what the
/// system refuses, FormatError, which names the field and the offset in bytes, for what does not follow the format, before anything of the
/// size that it claims is allocated, and UnsupportedError, before anything runs.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tinygrad/dtype.h>
#include <tinygrad/errors.h>
#include <tinygrad/export.h>
#include <tinygrad/tensor.h>

namespace tinygrad::onnx {

/// The types of elements under the format's numbers.
enum class ElementType : uint8_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  bool_ = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
  float6e2m3 = 27,
  float6e3m2 = 28,
};

/// "float32", "int4", ...
TINYGRAD_EXPORT std::string_view name(ElementType type);
/// How elements of a type lie in a Tensor. int4 and int2 are int8, uint4 and uint2 uint8; float4, float6 and float8e8m0, which no dtype is,
/// are their bits as uint8; a complex number is two floats along an axis of its own, the last. `void_` for strings and undefined.
TINYGRAD_EXPORT DType dtype_of(ElementType type);
/// The type of a dtype's own elements.
TINYGRAD_EXPORT ElementType element_type_of(DType dtype);

/// A tensor of texts, row-major.
struct Strings {
  Sizes shape = {};
  std::vector<std::string> values = {};
};

class Value;
struct Map;
namespace detail {
struct HostValue;
struct Codes;
struct ValueAccess;
}  // namespace detail

/// What goes in and out of a model: a tensor of numbers or of texts, a sequence of values, a map, or nothing (an optional without a value).
class TINYGRAD_EXPORT Value {
 public:
  enum class Kind : uint8_t { absent, tensor, strings, sequence, map };

  Value() = default;
  Value(Tensor tensor);
  /// The elements of a tensor as those of another type that lies in tensors in the same way.
  Value(Tensor tensor, ElementType type);
  Value(Strings strings);
  Value(std::vector<Value> sequence);
  Value(Map map);

  Kind kind() const { return kind_; }
  bool present() const { return kind_ != Kind::absent; }
  /// Of the elements; undefined for a sequence, a map and nothing.
  ElementType element_type() const { return type_; }
  /// These throw ValueError for another kind.
  const Tensor& tensor() const;
  const Strings& strings() const;
  const std::vector<Value>& sequence() const;
  const Map& map() const;
  /// The sizes of a tensor of either kind.
  Sizes shape() const;
  /// "float32 (2, 3)", "sequence of 2".
  std::string to_string() const;

 private:
  friend struct detail::ValueAccess;
  Kind kind_ = Kind::absent;
  ElementType type_ = ElementType::undefined;
  bool from_input_ = false;  ///< depends on what the caller gives, or on chance
  Tensor tensor_;            ///< not defined where host_ has it
  std::shared_ptr<const detail::HostValue> host_;
  std::shared_ptr<const detail::Codes> codes_;
  std::shared_ptr<const Strings> strings_;
  std::shared_ptr<const std::vector<Value>> sequence_;
  std::shared_ptr<const Map> map_;
};

/// Values by integers or by texts: one of both lists of keys is empty. `values` is a tensor with an element for each key, of numbers or
/// texts.
struct Map {
  std::vector<int64_t> integers = {};
  std::vector<std::string> texts = {};
  Value values = {};
};

using Values = std::map<std::string, Value>;

/// A size of a declared shape: a number, or a name for one that the caller chooses, or neither.
struct Dimension {
  int64_t size = -1;
  std::string name = {};
};

/// What a file says of an input or output.
struct ValueInfo {
  std::string name = {};
  std::string type = {};  ///< "float32 (batch, 3, 224, 224)", "sequence of int64", "optional of ..."
  ElementType element_type = ElementType::undefined;
  bool has_shape = false;
  std::vector<Dimension> shape = {};
  /// Of an input whose elements select rows of a weight: how many rows there are; -1 where nothing is known.
  int64_t index_bound = -1;
};

/// An operator that a model uses and that the library lacks.
struct UnsupportedOperator {
  std::string domain = {};  ///< "ai.onnx" for the default one
  std::string name = {};
  int64_t version = 0;             ///< of the operator set that the model imports
  std::vector<std::string> nodes;  ///< the names of the nodes, or of their first outputs
};

/// What a model uses and the library lacks, whole; thrown before anything runs.
class TINYGRAD_EXPORT UnsupportedError : public Error {
 public:
  UnsupportedError(const std::string& path, std::vector<UnsupportedOperator> operators);
  const std::vector<UnsupportedOperator>& operators() const { return operators_; }

 private:
  std::vector<UnsupportedOperator> operators_;
};

/// What a file says of its graph.
struct Description {
  std::vector<ValueInfo> inputs = {}, outputs = {};
  std::map<std::string, int64_t> operators = {};  ///< with the number of nodes
  std::vector<UnsupportedOperator> unsupported = {};
};
/// Looks at a model without reading its weights, and at those with unsupported operators, too. Throws IoError and FormatError. The weights
/// are listed by formats::open().
TINYGRAD_EXPORT Description describe(const std::string& path);

struct LoadOptions {
  bool follow_links = false;  ///< files of external data may be symbolic links, as in caches of Hugging Face
  bool each_size = false;     ///< Model::run() captures each size of its inputs for itself, never once for all
};

namespace detail {
struct ModelState;
}

/// A model: a function of named values. Copies are the same model.
class TINYGRAD_EXPORT Model {
 public:
  explicit Model(std::shared_ptr<detail::ModelState> state) : state_(std::move(state)) {}

  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  /// Producer, domain, versions and the pairs that the file gives.
  const std::map<std::string, std::string>& metadata() const;
  /// The weights by name. Those of floats may be assigned to, or others of their shape put in their place; integers, such as sizes, are
  /// read with the model.
  std::map<std::string, Tensor>& parameters() const;
  /// The operators of the graph and of what it calls, with the number of nodes.
  std::map<std::string, int64_t> operators() const;

  /// The outputs as lazy tensors, which are differentiable with respect to inputs and weights, and may be called in a jitted function.
  /// Values that shapes depend on are read at once. ValueError for inputs that are missing, unknown or of another type, and for sizes that
  /// a node does not take, naming it.
  Values operator()(const Values& inputs) const;
  /// The same, realized. The first call with inputs of these sizes walks the graph, the second captures it, further ones replay its
  /// kernels. Once parameters() was called, what is computed of weights alone is computed in each call.
  Values run(const Values& inputs) const;

 private:
  std::shared_ptr<detail::ModelState> state_;
};

/// Reads a model, whose weights are used on the default device. External data lies in the model's folder or below it: FormatError for a
/// path that is absolute or contains "..", or that a link leads out of it.
TINYGRAD_EXPORT Model load(const std::string& path, const LoadOptions& options = {});
/// The same from a file's bytes, a vector of uint8, which has no external data.
TINYGRAD_EXPORT Model load(const Tensor& bytes, const LoadOptions& options = {});

}  // namespace tinygrad::onnx
