// Messages of ONNX files, read from their bytes. Everything is checked: types of fields, lengths, depth, numbers that must fit.
#include "frontend/onnx/proto.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <bit>
#include <protozero/pbf_reader.hpp>
#include <set>

#include <tinygrad/errors.h>

namespace tinygrad::onnx::proto {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

namespace {

constexpr int most_depth = 64;              // of graphs in attributes, of types and of sequences
constexpr size_t most_attributes = 1024;    // of a node
constexpr size_t most_axes = 64;            // of a tensor
constexpr int64_t most_versions = 1 << 20;  // beyond any version of an operator set

/// Reads the fields of one message.
class Fields {
 public:
  Fields(const Source& source, std::string_view message, const char* what)
      : source_(source), message_(message), what_(what), reader_(message.data(), message.size()) {}

  /// The next field; false at the end.
  bool next() {
    return guarded([&] { return reader_.next(); });
  }
  uint32_t tag() const { return reader_.tag(); }
  void skip() {
    guarded([&] { return reader_.skip(), true; });
  }
  std::string_view view() {
    want(pbf_wire_type::length_delimited);
    return guarded([&] {
      const protozero::data_view v = reader_.get_view();
      return std::string_view(v.data(), v.size());
    });
  }
  std::string text() { return std::string(view()); }
  int64_t integer() {
    want(pbf_wire_type::varint);
    return guarded([&] { return reader_.get_int64(); });
  }
  float number() {
    want(pbf_wire_type::fixed32);
    return guarded([&] { return reader_.get_float(); });
  }
  /// The numbers of a repeated field, packed or a single one.
  void numbers(Numbers form, const std::function<void(uint64_t)>& f) {
    if (reader_.wire_type() != pbf_wire_type::length_delimited) return f(one(form));
    const std::string_view packed = view();
    if (form == Numbers::varint) return each_varint(packed, f);
    const size_t size = form == Numbers::float32 ? 4 : 8;
    if (packed.size() % size != 0) fail(fmt::format("a packed list of {} bytes is no list of {}-byte numbers", packed.size(), size));
    for (size_t i = 0; i < packed.size(); i += size) {
      uint64_t bits = 0;
      std::memcpy(&bits, packed.data() + i, size);
      f(bits);
    }
  }
  [[noreturn]] void fail(const std::string& what) const {
    proto::fail(source_, message_, fmt::format("{} of {} bytes, field {}: {}", what_, message_.size(), reader_.tag(), what));
  }

 private:
  template <class F>
  auto guarded(F f) -> decltype(f()) {
    try {
      return f();
    } catch (const protozero::exception& e) {
      fail(e.what());
    }
  }
  void want(pbf_wire_type type) const {
    if (reader_.wire_type() != type) fail(fmt::format("has wire type {}, expected {}", int(reader_.wire_type()), int(type)));
  }
  uint64_t one(Numbers form) {
    if (form == Numbers::varint) return uint64_t(integer());
    if (form == Numbers::float32) return std::bit_cast<uint32_t>(number());
    want(pbf_wire_type::fixed64);
    return guarded([&] { return reader_.get_fixed64(); });
  }
  void each_varint(std::string_view packed, const std::function<void(uint64_t)>& f) {
    const char *at = packed.data(), *end = packed.data() + packed.size();
    while (at != end) f(guarded([&] { return protozero::decode_varint(&at, end); }));
  }

  const Source& source_;
  const std::string_view message_;
  const char* what_;
  pbf_reader reader_;
};

class ModelReader {
 public:
  explicit ModelReader(const Source& source) : source_(source) {}

  Model model(std::string_view bytes);
  TensorProto tensor(std::string_view bytes);
  Data data(std::string_view bytes, TypeInfo::Kind kind);

 private:
  struct Depth {
    explicit Depth(ModelReader& reader, std::string_view at) : depth(reader.depth_) {
      if (++depth > most_depth) proto::fail(reader.source_, at, fmt::format("messages are nested deeper than {}", most_depth));
    }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& depth;
  };

  Graph graph(std::string_view bytes);
  Node node(std::string_view bytes);
  Attribute attribute(std::string_view bytes);
  Function function(std::string_view bytes);
  TypeInfo type(std::string_view bytes);
  void tensor_type(std::string_view bytes, TypeInfo& into);
  std::vector<Dimension> shape(std::string_view bytes);
  Dimension dimension(std::string_view bytes);
  NamedType named_type(std::string_view bytes);
  SparseTensorProto sparse_tensor(std::string_view bytes);
  std::pair<std::string, std::string> entry(std::string_view bytes);
  void opset(std::string_view bytes, Opsets& into);
  Sizes dims(Fields& f, Sizes into);
  ElementType element_type(Fields& f);
  void count_elements(TensorProto& t);

  const Source& source_;
  int depth_ = 0;
};

ElementType ModelReader::element_type(Fields& f) {
  const int64_t number = f.integer();
  if (number < 0 || number > int64_t(ElementType::float6e3m2)) f.fail(fmt::format("the element type {} is unknown", number));
  return ElementType(number);
}

Sizes ModelReader::dims(Fields& f, Sizes into) {
  f.numbers(Numbers::varint, [&](uint64_t bits) {
    if (into.size() == most_axes) f.fail(fmt::format("more than {} axes", most_axes));
    if (int64_t(bits) < 0) f.fail(fmt::format("the size {} is negative", int64_t(bits)));
    into.push_back(int64_t(bits));
  });
  return into;
}

void ModelReader::count_elements(TensorProto& t) {
  t.count = 1;
  bool is_empty = false;
  for (int64_t s : t.dims) is_empty |= s == 0;
  if (is_empty) t.count = 0;
  for (int64_t s : t.dims)
    if (!is_empty && __builtin_mul_overflow(t.count, s, &t.count))
      proto::fail(source_, t.message,
                  fmt::format("the tensor '{}' of the shape ({}) has more elements than 64 bits count", t.name, fmt::join(t.dims, ", ")));
}

TensorProto ModelReader::tensor(std::string_view bytes) {
  TensorProto t;
  t.message = bytes;
  Fields f(source_, bytes, "TensorProto");
  while (f.next()) {
    switch (f.tag()) {
      case 1: t.dims = dims(f, std::move(t.dims)); break;
      case 2: t.type = element_type(f); break;
      case 8: t.name = f.text(); break;
      case 9: t.raw = f.view(); break;
      case 13: {
        auto [key, value] = entry(f.view());
        if (!t.external.try_emplace(key, value).second) f.fail(fmt::format("the key '{}' of the external data occurs twice", key));
        break;
      }
      case 14: t.is_external = f.integer() == 1; break;
      case 3: f.fail("tensors in segments are not supported");
      default: f.skip();
    }
  }
  if (t.type == ElementType::undefined) proto::fail(source_, bytes, fmt::format("the tensor '{}' has no element type", t.name));
  count_elements(t);
  return t;
}

SparseTensorProto ModelReader::sparse_tensor(std::string_view bytes) {
  SparseTensorProto t;
  bool has_values = false, has_indices = false;
  Fields f(source_, bytes, "SparseTensorProto");
  while (f.next()) {
    switch (f.tag()) {
      case 1: t.values = tensor(f.view()), has_values = true; break;
      case 2: t.indices = tensor(f.view()), has_indices = true; break;
      case 3: t.dims = dims(f, std::move(t.dims)); break;
      default: f.skip();
    }
  }
  if (!has_values || !has_indices) proto::fail(source_, bytes, "a sparse tensor lacks its values or indices");
  return t;
}

std::pair<std::string, std::string> ModelReader::entry(std::string_view bytes) {
  std::pair<std::string, std::string> e;
  Fields f(source_, bytes, "StringStringEntryProto");
  while (f.next()) {
    switch (f.tag()) {
      case 1: e.first = f.text(); break;
      case 2: e.second = f.text(); break;
      default: f.skip();
    }
  }
  return e;
}

void ModelReader::opset(std::string_view bytes, Opsets& into) {
  std::string domain;
  int64_t version = 0;
  Fields f(source_, bytes, "OperatorSetIdProto");
  while (f.next()) {
    switch (f.tag()) {
      case 1: domain = f.text(); break;
      case 2: version = f.integer(); break;
      default: f.skip();
    }
  }
  if (version < 0 || version > most_versions)
    proto::fail(source_, bytes, fmt::format("the version {} of the operator set '{}'", version, domain));
  into[domain_name(domain)] = version;
}

Dimension ModelReader::dimension(std::string_view bytes) {
  Dimension d;
  Fields f(source_, bytes, "Dimension");
  while (f.next()) {
    switch (f.tag()) {
      case 1: d.size = f.integer(); break;
      case 2: d.name = f.text(); break;
      default: f.skip();
    }
  }
  return d;
}

std::vector<Dimension> ModelReader::shape(std::string_view bytes) {
  std::vector<Dimension> out;
  Fields f(source_, bytes, "TensorShapeProto");
  while (f.next()) {
    if (f.tag() != 1) {
      f.skip();
      continue;
    }
    if (out.size() == most_axes) f.fail(fmt::format("more than {} axes", most_axes));
    out.push_back(dimension(f.view()));
  }
  return out;
}

void ModelReader::tensor_type(std::string_view bytes, TypeInfo& into) {
  Fields f(source_, bytes, "TypeProto.Tensor");
  while (f.next()) {
    switch (f.tag()) {
      case 1: into.element_type = element_type(f); break;
      case 2: into.shape = shape(f.view()), into.has_shape = true; break;
      default: f.skip();
    }
  }
}

TypeInfo ModelReader::type(std::string_view bytes) {
  const Depth depth(*this, bytes);
  using Kind = TypeInfo::Kind;
  TypeInfo t;
  const auto of_elements = [&](Kind kind, std::string_view message, uint32_t element_tag) {
    t = {.kind = kind};
    Fields f(source_, message, "TypeProto");
    while (f.next()) {
      if (f.tag() == element_tag)
        t.element = std::make_shared<TypeInfo>(type(f.view()));
      else if (kind == Kind::map && f.tag() == 1)
        t.element_type = element_type(f);
      else
        f.skip();
    }
  };
  Fields f(source_, bytes, "TypeProto");
  while (f.next()) {
    switch (f.tag()) {
      case 1:
      case 8:
        t = {.kind = f.tag() == 1 ? Kind::tensor : Kind::sparse_tensor};
        tensor_type(f.view(), t);
        break;
      case 4: of_elements(Kind::sequence, f.view(), 1); break;
      case 5: of_elements(Kind::map, f.view(), 2); break;
      case 9: of_elements(Kind::optional, f.view(), 1); break;
      case 7: t = {.kind = Kind::opaque}, f.skip(); break;
      default: f.skip();
    }
  }
  return t;
}

NamedType ModelReader::named_type(std::string_view bytes) {
  NamedType v;
  Fields f(source_, bytes, "ValueInfoProto");
  while (f.next()) {
    switch (f.tag()) {
      case 1: v.name = f.text(); break;
      case 2: v.type = type(f.view()); break;
      default: f.skip();
    }
  }
  return v;
}

Attribute ModelReader::attribute(std::string_view bytes) {
  using Kind = Attribute::Kind;
  const Depth depth(*this, bytes);
  Attribute a;
  Kind seen = Kind::undefined;
  Fields f(source_, bytes, "AttributeProto");
  const auto saw = [&](Kind kind) { seen = kind; };
  while (f.next()) {
    switch (f.tag()) {
      case 1: a.name = f.text(); break;
      case 21: a.ref_name = f.text(); break;
      case 20: {
        const int64_t number = f.integer();
        if (number < 0 || number > int64_t(Kind::types)) f.fail(fmt::format("the kind {} of an attribute is unknown", number));
        a.kind = Kind(number);
        break;
      }
      case 2: a.number = double(f.number()), saw(Kind::number); break;
      case 3: a.integer = f.integer(), saw(Kind::integer); break;
      case 4: a.text = f.text(), saw(Kind::text); break;
      case 5: a.tensors = {tensor(f.view())}, saw(Kind::tensor); break;
      case 6: a.graphs = {std::make_shared<Graph>(graph(f.view()))}, saw(Kind::graph); break;
      case 14: a.types = {type(f.view())}, saw(Kind::type); break;
      case 22: a.sparse_tensors = {sparse_tensor(f.view())}, saw(Kind::sparse_tensor); break;
      case 7:
        f.numbers(Numbers::float32, [&](uint64_t bits) { a.numbers.push_back(double(std::bit_cast<float>(uint32_t(bits)))); });
        saw(Kind::numbers);
        break;
      case 8:
        f.numbers(Numbers::varint, [&](uint64_t bits) { a.integers.push_back(int64_t(bits)); });
        saw(Kind::integers);
        break;
      case 9: a.texts.push_back(f.text()), saw(Kind::texts); break;
      case 10: a.tensors.push_back(tensor(f.view())), saw(Kind::tensors); break;
      case 11: a.graphs.push_back(std::make_shared<Graph>(graph(f.view()))), saw(Kind::graphs); break;
      case 15: a.types.push_back(type(f.view())), saw(Kind::types); break;
      case 23: a.sparse_tensors.push_back(sparse_tensor(f.view())), saw(Kind::sparse_tensors); break;
      default: f.skip();
    }
  }
  if (a.name.empty()) proto::fail(source_, bytes, "an attribute has no name");
  if (a.kind == Kind::undefined) a.kind = seen;  // files of the first versions lack it
  const bool lacks = (a.kind == Kind::tensor && a.tensors.empty()) || (a.kind == Kind::graph && a.graphs.empty()) ||
                     (a.kind == Kind::type && a.types.empty()) || (a.kind == Kind::sparse_tensor && a.sparse_tensors.empty());
  if (lacks && a.ref_name.empty()) proto::fail(source_, bytes, fmt::format("the attribute '{}' lacks its value", a.name));
  return a;
}

Node ModelReader::node(std::string_view bytes) {
  Node n;
  Fields f(source_, bytes, "NodeProto");
  while (f.next()) {
    switch (f.tag()) {
      case 1: n.inputs.push_back(f.text()); break;
      case 2: n.outputs.push_back(f.text()); break;
      case 3: n.name = f.text(); break;
      case 4: n.op_type = f.text(); break;
      case 5:
        if (n.attributes.size() == most_attributes) f.fail(fmt::format("more than {} attributes", most_attributes));
        n.attributes.push_back(attribute(f.view()));
        for (size_t i = 0; i + 1 < n.attributes.size(); ++i)
          if (n.attributes[i].name == n.attributes.back().name) f.fail(fmt::format("two attributes '{}'", n.attributes[i].name));
        break;
      case 7: n.domain = f.text(); break;
      case 8: n.overload = f.text(); break;
      default: f.skip();
    }
  }
  if (n.op_type.empty()) proto::fail(source_, bytes, "a node names no operator");
  n.domain = domain_name(n.domain);
  return n;
}

Graph ModelReader::graph(std::string_view bytes) {
  const Depth depth(*this, bytes);
  Graph g;
  std::set<std::string, std::less<>> initialized;
  Fields f(source_, bytes, "GraphProto");
  const auto check_name = [&](const std::string& name) {
    if (name.empty()) f.fail("an initializer has no name");
    if (!initialized.insert(name).second) f.fail(fmt::format("two initializers '{}'", name));
  };
  while (f.next()) {
    switch (f.tag()) {
      case 1: g.nodes.push_back(node(f.view())); break;
      case 2: g.name = f.text(); break;
      case 5:
        g.initializers.push_back(tensor(f.view()));
        check_name(g.initializers.back().name);
        break;
      case 15:
        g.sparse_initializers.push_back(sparse_tensor(f.view()));
        check_name(g.sparse_initializers.back().values.name);
        break;
      case 11: g.inputs.push_back(named_type(f.view())); break;
      case 12: g.outputs.push_back(named_type(f.view())); break;
      default: f.skip();
    }
  }
  return g;
}

Function ModelReader::function(std::string_view bytes) {
  Function out;
  Fields f(source_, bytes, "FunctionProto");
  while (f.next()) {
    switch (f.tag()) {
      case 1: out.name = f.text(); break;
      case 4: out.inputs.push_back(f.text()); break;
      case 5: out.outputs.push_back(f.text()); break;
      case 6: out.attributes.push_back(f.text()); break;
      case 7: out.nodes.push_back(node(f.view())); break;
      case 9: opset(f.view(), out.opsets); break;
      case 10: out.domain = f.text(); break;
      case 11: out.with_defaults.push_back(attribute(f.view())); break;
      case 13: out.overload = f.text(); break;
      default: f.skip();
    }
  }
  if (out.name.empty()) proto::fail(source_, bytes, "a function has no name");
  out.domain = domain_name(out.domain);
  return out;
}

Model ModelReader::model(std::string_view bytes) {
  Model m;
  bool has_graph = false;
  Fields f(source_, bytes, "ModelProto");
  while (f.next()) {
    switch (f.tag()) {
      case 1: m.ir_version = f.integer(); break;
      case 2: m.metadata["producer_name"] = f.text(); break;
      case 3: m.metadata["producer_version"] = f.text(); break;
      case 4: m.metadata["domain"] = f.text(); break;
      case 5: m.metadata["model_version"] = std::to_string(f.integer()); break;
      case 7: m.graph = graph(f.view()), has_graph = true; break;
      case 8: opset(f.view(), m.opsets); break;
      case 14: {
        auto [key, value] = entry(f.view());
        m.metadata[key] = value;
        break;
      }
      case 25: m.functions.push_back(function(f.view())); break;
      default: f.skip();
    }
  }
  if (!has_graph) proto::fail(source_, bytes, "there is no graph: no ONNX model");
  m.metadata["ir_version"] = std::to_string(m.ir_version);
  if (m.opsets.empty()) m.opsets["ai.onnx"] = 1;  // as files before IR version 3
  return m;
}

Data ModelReader::data(std::string_view bytes, TypeInfo::Kind kind) {
  const Depth depth(*this, bytes);
  using Kind = TypeInfo::Kind;
  Data d;
  Fields f(source_, bytes, kind == Kind::map ? "MapProto" : kind == Kind::optional ? "OptionalProto" : "SequenceProto");
  if (kind == Kind::map) d.kind = Data::Kind::map;
  while (f.next()) {
    if (kind == Kind::map) {
      switch (f.tag()) {
        case 3: f.numbers(Numbers::varint, [&](uint64_t bits) { d.keys.push_back(int64_t(bits)); }); break;
        case 4: d.text_keys.push_back(f.text()); break;
        case 5: d.items.push_back(data(f.view(), Kind::sequence)); break;
        default: f.skip();
      }
      continue;
    }
    switch (f.tag()) {
      case 2: {
        const int64_t number = f.integer();
        if (number < 0 || number > int64_t(Data::Kind::optional)) f.fail(fmt::format("the kind {} is unknown", number));
        if (kind == Kind::optional) d.kind = Data::Kind(number);
        break;
      }
      case 3: d.tensors.push_back(tensor(f.view())); break;
      case 5: d.items.push_back(data(f.view(), Kind::sequence)); break;
      case 6: d.items.push_back(data(f.view(), Kind::map)); break;
      case 7: d.items.push_back(data(f.view(), Kind::optional)); break;
      default: f.skip();
    }
  }
  if (kind == Kind::sequence) d.kind = Data::Kind::sequence;
  return d;
}

}  // namespace

void fail(const Source& source, std::string_view at, const std::string& what) {
  throw FormatError(fmt::format("{}: byte {}: {}", source.name, at.data() ? at.data() - source.begin : 0, what));
}

std::string domain_name(std::string_view domain) { return domain.empty() ? "ai.onnx" : std::string(domain); }

const Attribute* Node::attribute(std::string_view wanted) const {
  for (const Attribute& a : attributes)
    if (a.name == wanted) return &a;
  return nullptr;
}

std::string Node::to_string() const {
  const std::string label = !name.empty() ? name : outputs.empty() ? "" : outputs.front();
  return fmt::format("{} node '{}'", op_type, label);
}

std::string TypeInfo::to_string() const {
  const auto inner = [&] { return element ? element->to_string() : std::string("anything"); };
  switch (kind) {
    case Kind::tensor: {
      std::vector<std::string> sizes;
      for (const Dimension& d : shape) sizes.push_back(d.size >= 0 ? std::to_string(d.size) : d.name.empty() ? "?" : d.name);
      return has_shape ? fmt::format("{} ({})", onnx::name(element_type), fmt::join(sizes, ", ")) : std::string(onnx::name(element_type));
    }
    case Kind::sequence: return "sequence of " + inner();
    case Kind::optional: return "optional of " + inner();
    case Kind::map: return fmt::format("map of {} to {}", onnx::name(element_type), inner());
    case Kind::sparse_tensor: return "sparse tensor";
    case Kind::opaque: return "opaque";
    default: return "undefined";
  }
}

Model read_model(const Source& source, std::string_view bytes) { return ModelReader(source).model(bytes); }
TensorProto read_tensor(const Source& source, std::string_view bytes) { return ModelReader(source).tensor(bytes); }
Data read_data(const Source& source, std::string_view bytes, TypeInfo::Kind kind) { return ModelReader(source).data(bytes, kind); }

void each_number(const Source& source, std::string_view message, uint32_t tag, Numbers form, const std::function<void(uint64_t bits)>& f) {
  Fields fields(source, message, "TensorProto");
  while (fields.next()) {
    if (fields.tag() == tag)
      fields.numbers(form, f);
    else
      fields.skip();
  }
}

void each_text(const Source& source, std::string_view message, uint32_t tag, const std::function<void(std::string_view)>& f) {
  Fields fields(source, message, "TensorProto");
  while (fields.next()) {
    if (fields.tag() == tag)
      f(fields.view());
    else
      fields.skip();
  }
}

}  // namespace tinygrad::onnx::proto
