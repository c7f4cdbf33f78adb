#pragma once
/// The messages of an ONNX file (onnx.proto), of which texts and elements stay in the file's bytes.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tinygrad/onnx.h>

namespace tinygrad::onnx::proto {

/// The bytes of a file: messages of errors count offsets from `begin`.
struct Source {
  const char* begin = nullptr;
  std::string name;
};

/// Throws FormatError: "NAME: byte 12: WHAT".
[[noreturn]] void fail(const Source& source, std::string_view at, const std::string& what);

struct TensorProto {
  std::string name;
  ElementType type = ElementType::undefined;
  Sizes dims;
  int64_t count = 0;  ///< of elements; the product of the sizes
  std::string_view message;
  std::optional<std::string_view> raw;
  bool is_external = false;
  std::map<std::string, std::string> external;
};

struct SparseTensorProto {
  TensorProto values, indices;
  Sizes dims;
};

struct Graph;
struct TypeInfo;

struct Attribute {
  enum class Kind : uint8_t {
    undefined = 0,
    number = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    numbers = 6,
    integers = 7,
    texts = 8,
    tensors = 9,
    graphs = 10,
    sparse_tensor = 11,
    sparse_tensors = 12,
    type = 13,
    types = 14,
  };
  std::string name, ref_name;
  Kind kind = Kind::undefined;
  double number = 0;
  int64_t integer = 0;
  std::string text;
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  std::vector<TensorProto> tensors;
  std::vector<SparseTensorProto> sparse_tensors;
  std::vector<std::shared_ptr<const Graph>> graphs;
  std::vector<TypeInfo> types;
};

struct TypeInfo {
  enum class Kind : uint8_t { undefined, tensor, sequence, map, optional, sparse_tensor, opaque };
  Kind kind = Kind::undefined;
  ElementType element_type = ElementType::undefined;  ///< of keys, for a map
  bool has_shape = false;
  std::vector<Dimension> shape = {};
  std::shared_ptr<const TypeInfo> element = {};
  std::string to_string() const;
};

struct NamedType {
  std::string name;
  TypeInfo type;
};

struct Node {
  std::string name, op_type, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;
  const Attribute* attribute(std::string_view wanted) const;
  /// For messages: "Conv node 'conv1'".
  std::string to_string() const;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<NamedType> inputs, outputs;
};

using Opsets = std::map<std::string, int64_t>;

struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;   ///< without a default
  std::vector<Attribute> with_defaults;  ///< attributes with one
  std::vector<Node> nodes;
  Opsets opsets;
};

struct Model {
  int64_t ir_version = 0;
  Opsets opsets;
  std::map<std::string, std::string> metadata;
  Graph graph;
  std::vector<Function> functions;
};

/// Domain "" and "ai.onnx" are one.
std::string domain_name(std::string_view domain);

/// Reads a model. Throws FormatError.
Model read_model(const Source& source, std::string_view bytes);
TensorProto read_tensor(const Source& source, std::string_view bytes);

/// SequenceProto, OptionalProto and MapProto, as files of tests hold them.
struct Data {
  enum class Kind : uint8_t { absent = 0, tensor = 1, sparse_tensor = 2, sequence = 3, map = 4, optional = 5 };
  Kind kind = Kind::absent;
  std::vector<TensorProto> tensors;
  std::vector<Data> items;
  std::vector<int64_t> keys;
  std::vector<std::string> text_keys;
};
/// A message of a sequence, of an optional or of a map.
Data read_data(const Source& source, std::string_view bytes, TypeInfo::Kind kind);

/// Calls f with each number of the fields `tag` of a message, which are packed or not: of varints (signed, by two's complement), floats or
/// doubles.
enum class Numbers : uint8_t { varint, float32, float64 };
void each_number(const Source& source, std::string_view message, uint32_t tag, Numbers form, const std::function<void(uint64_t bits)>& f);
/// The texts of the fields `tag`.
void each_text(const Source& source, std::string_view message, uint32_t tag, const std::function<void(std::string_view)>& f);

}  // namespace tinygrad::onnx::proto
