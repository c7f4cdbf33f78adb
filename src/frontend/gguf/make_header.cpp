// What stands before the data of a GGUF file that is written.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_set>

#include <tinygrad/errors.h>

#include "frontend/gguf/header.h"
#include "frontend/gguf/types.h"

namespace tinygrad::frontend {

using formats::Metadata;
using formats::MetadataValue;

namespace {

constexpr uint32_t version = 3;
constexpr size_t most_name_bytes = 63;  // that GGML reads

/// The narrowest type, of those that readers ask for, that holds a value.
GgufValue type_of(const MetadataValue& value, std::string_view key) {
  struct Visitor {
    std::string_view key;
    GgufValue operator()(bool) const { return GgufValue::boolean; }
    GgufValue operator()(int64_t v) const { return v == int32_t(v) ? GgufValue::i32 : GgufValue::i64; }
    GgufValue operator()(uint64_t v) const { return v == uint32_t(v) ? GgufValue::u32 : GgufValue::u64; }
    GgufValue operator()(double v) const { return double(float(v)) == v || std::isnan(v) ? GgufValue::f32 : GgufValue::f64; }
    GgufValue operator()(const std::string&) const { return GgufValue::text; }
    GgufValue operator()(const std::vector<MetadataValue>&) const { return GgufValue::array; }
    GgufValue operator()(std::monostate) const { refuse(); }
    GgufValue operator()(const Metadata&) const { refuse(); }
    [[noreturn]] void refuse() const {
      throw ValueError(
          fmt::format("gguf_save: '{}' of the metadata is neither a number, a boolean, a text nor a list of one of them", key));
    }
  };
  return std::visit(Visitor{key}, value.value);
}

class Writer {
 public:
  template <class T>
  void number(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void text(std::string_view value) {
    number(uint64_t(value.size()));
    out_ += value;
  }
  void pair(const std::string& key, const MetadataValue& value) {
    text(key);
    const GgufValue type = key == alignment_key ? GgufValue::u32 : type_of(value, key);
    number(uint32_t(type));
    this->value(value, type, key);
  }
  void tensor(const OutgoingTensor& entry, uint32_t type, uint64_t offset) {
    text(entry.name);
    const Sizes one{1};
    const Sizes& shape = entry.shape.empty() ? one : entry.shape;
    number(uint32_t(shape.size()));
    for (size_t i = shape.size(); i-- > 0;) number(uint64_t(shape[i]));
    number(type);
    number(offset);
  }
  void fill(uint64_t alignment) { out_.append((alignment - out_.size() % alignment) % alignment, '\0'); }
  std::string take() { return std::move(out_); }

 private:
  void value(const MetadataValue& value, GgufValue type, std::string_view key) {
    switch (type) {
      case GgufValue::boolean: number(uint8_t(std::get<bool>(value.value))); break;
      case GgufValue::u32: number(uint32_t(std::get<uint64_t>(value.value))); break;
      case GgufValue::i32: number(int32_t(std::get<int64_t>(value.value))); break;
      case GgufValue::u64: number(std::get<uint64_t>(value.value)); break;
      case GgufValue::i64: number(std::get<int64_t>(value.value)); break;
      case GgufValue::f32: number(float(std::get<double>(value.value))); break;
      case GgufValue::f64: number(std::get<double>(value.value)); break;
      case GgufValue::text: text(std::get<std::string>(value.value)); break;
      default: list(std::get<std::vector<MetadataValue>>(value.value), key);
    }
  }
  /// Elements of one type: the wider one of two for numbers of a kind.
  void list(const std::vector<MetadataValue>& values, std::string_view key) {
    GgufValue type = GgufValue::i32;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].value.index() != values[0].value.index())
        throw ValueError(fmt::format("gguf_save: '{}' of the metadata is a list of values of several kinds", key));
      const GgufValue own = type_of(values[i], key);
      type = i == 0 ? own : std::max(type, own);  // u64, i64 and f64 are the last ones
    }
    number(uint32_t(type));
    number(uint64_t(values.size()));
    for (const MetadataValue& v : values) value(v, type, key);
  }

  std::string out_;
};

uint64_t alignment_of(const Metadata& metadata) {
  const MetadataValue* given = find_metadata(metadata, alignment_key);
  if (!given) return default_alignment;
  const auto* number = std::get_if<uint64_t>(&given->value);
  if (!number || !std::has_single_bit(*number) || *number > std::numeric_limits<uint32_t>::max())
    throw ValueError(fmt::format("gguf_save: {} is no uint64_t that is a power of two below 2^32", alignment_key));
  return *number;
}

void check_keys(const Metadata& metadata) {
  std::unordered_set<std::string_view> keys;
  for (const auto& [key, value] : metadata) {
    if (key.empty()) throw ValueError("gguf_save: a key of the metadata is empty");
    if (!keys.insert(key).second) throw ValueError(fmt::format("gguf_save: the key '{}' occurs twice in the metadata", key));
  }
}

uint32_t checked_type(const OutgoingTensor& entry) {
  if (entry.name.size() > most_name_bytes)
    throw ValueError(
        fmt::format("gguf_save: the name '{}' has {} bytes, expects at most {}", entry.name, entry.name.size(), most_name_bytes));
  if (entry.shape.size() > most_gguf_axes)
    throw ShapeError(
        fmt::format("gguf_save: '{}' is ({}), expects at most {} axes", entry.name, fmt::join(entry.shape, ", "), most_gguf_axes));
  const std::optional<uint32_t> type = gguf_type_id(entry.type);
  if (!type)
    throw DTypeError(fmt::format("gguf_save: '{}' is {}, which GGUF lacks; cast it", entry.name, repr(std::get<DType>(entry.type))));
  return *type;
}

}  // namespace

GgufBeginning make_gguf_header(const Metadata& metadata, std::span<const OutgoingTensor> tensors) {
  check_keys(metadata);
  const uint64_t alignment = alignment_of(metadata);
  Writer out;
  for (const char c : std::string_view("GGUF")) out.number(c);
  out.number(version);
  out.number(uint64_t(tensors.size()));
  out.number(uint64_t(metadata.size()));
  for (const auto& [key, value] : metadata) out.pair(key, value);
  GgufBeginning beginning;
  std::unordered_set<std::string_view> names;
  for (const OutgoingTensor& entry : tensors) {
    const uint32_t type = checked_type(entry);
    if (!names.insert(entry.name).second) throw ValueError(fmt::format("gguf_save: the name '{}' occurs twice", entry.name));
    out.tensor(entry, type, beginning.data_bytes);
    beginning.offsets.push_back(beginning.data_bytes);
    beginning.data_bytes += (uint64_t(entry.bytes()) + alignment - 1) / alignment * alignment;
  }
  out.fill(alignment);
  beginning.bytes = out.take();
  return beginning;
}

}  // namespace tinygrad::frontend
