#include "frontend/gguf/header.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_set>

#include <tinygrad/errors.h>

#include "frontend/byte_cursor.h"
#include "frontend/gguf/types.h"

namespace tinygrad::frontend {

using formats::Metadata;
using formats::MetadataValue;
using formats::TensorInfo;

namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are little-endian and used in place");

constexpr int most_array_depth = 8;
constexpr uint64_t most_name_bytes = 65535;
// The fewest bytes that one of them takes.
constexpr uint64_t least_pair_bytes = 8 + 1 + 4 + 1, least_tensor_bytes = 8 + 4 + 8 + 4 + 8;

/// Of a text of the file as errors show it.
std::string shown(std::string_view text) {
  constexpr size_t most = 80;
  return text.size() <= most ? std::string(text) : fmt::format("{}...", text.substr(0, most));
}

class Parser {
 public:
  Parser(std::span<const std::byte> file, const std::string& name) : at_(file, name), size_(file.size()) {}

  GgufHeader parse() {
    const auto [tensors, pairs] = counts();
    for (uint64_t i = 0; i < pairs; ++i) read_pair();
    for (uint64_t i = 0; i < tensors; ++i) read_tensor();
    place_tensors();
    return std::move(out_);
  }

 private:
  struct Counts {
    uint64_t tensors, pairs;
  };
  Counts counts() {
    if (at_.text(4, "magic") != "GGUF") at_.fail("magic", "it is not GGUF");
    const auto version = at_.number<uint32_t>("version");
    if ((version & 0xffff) == 0) at_.fail("version", "the file is big-endian, which is not supported; convert it to little-endian");
    if (version != 2 && version != 3) at_.fail("version", fmt::format("{}, expects 2 or 3", version));
    return {count("tensor count", least_tensor_bytes), count("metadata count", least_pair_bytes)};
  }
  /// A number of things that take at least as many bytes each: there cannot be more than the file has room for.
  uint64_t count(std::string_view field, uint64_t least_bytes) {
    const auto n = at_.number<uint64_t>(field);
    if (n > at_.left() / least_bytes) at_.fail(field, fmt::format("{} do not fit into the {} bytes that are left", n, at_.left()));
    return n;
  }
  std::string_view text(std::string_view field, uint64_t most = UINT64_MAX) {
    const auto size = at_.number<uint64_t>(field);
    if (size > most) at_.fail(field, fmt::format("{} bytes, expects at most {}", size, most));
    return at_.text(size, field);
  }

  void read_pair() {
    const std::string_view key = text("metadata key", most_name_bytes);
    if (key.empty()) at_.fail("metadata key", "it is empty");
    if (!keys_.insert(key).second) at_.fail("metadata key", fmt::format("'{}' occurs twice", shown(key)));
    const std::string field = fmt::format("metadata '{}'", shown(key));
    const GgufValue type = read_type(field);
    if (key == alignment_key && type != GgufValue::u32) at_.fail(field, "its type is not uint32");
    MetadataValue value = read_value(type, field, 0);
    if (key == alignment_key) {
      alignment_ = std::get<uint64_t>(value.value);
      if (!std::has_single_bit(alignment_)) at_.fail(field, fmt::format("{} is no power of two", alignment_));
    }
    out_.metadata.emplace_back(std::string(key), std::move(value));
  }
  GgufValue read_type(const std::string& field) {
    const auto type = at_.number<uint32_t>(field);
    if (type >= gguf_value_types) at_.fail(field, fmt::format("no type of values has the number {}", type));
    return GgufValue(type);
  }
  static uint64_t least_bytes(GgufValue type) {
    switch (type) {
      case GgufValue::u8:
      case GgufValue::i8:
      case GgufValue::boolean: return 1;
      case GgufValue::u16:
      case GgufValue::i16: return 2;
      case GgufValue::u32:
      case GgufValue::i32:
      case GgufValue::f32: return 4;
      case GgufValue::array: return 12;
      default: return 8;
    }
  }
  MetadataValue read_value(GgufValue type, const std::string& field, int depth) {
    switch (type) {
      case GgufValue::u8: return {uint64_t(at_.number<uint8_t>(field))};
      case GgufValue::i8: return {int64_t(at_.number<int8_t>(field))};
      case GgufValue::u16: return {uint64_t(at_.number<uint16_t>(field))};
      case GgufValue::i16: return {int64_t(at_.number<int16_t>(field))};
      case GgufValue::u32: return {uint64_t(at_.number<uint32_t>(field))};
      case GgufValue::i32: return {int64_t(at_.number<int32_t>(field))};
      case GgufValue::f32: return {double(at_.number<float>(field))};
      case GgufValue::u64: return {at_.number<uint64_t>(field)};
      case GgufValue::i64: return {at_.number<int64_t>(field)};
      case GgufValue::f64: return {at_.number<double>(field)};
      case GgufValue::text: return {std::string(text(field))};
      case GgufValue::boolean: {
        const auto value = at_.number<uint8_t>(field);
        if (value > 1) at_.fail(field, fmt::format("the boolean {}, expects 0 or 1", value));
        return {value == 1};
      }
      case GgufValue::array: break;
    }
    if (depth == most_array_depth) at_.fail(field, fmt::format("arrays nested more than {} deep", most_array_depth));
    const GgufValue inner = read_type(field);
    const uint64_t n = count(field, least_bytes(inner));
    std::vector<MetadataValue> values;
    values.reserve(n);
    for (uint64_t i = 0; i < n; ++i) values.push_back(read_value(inner, field, depth + 1));
    return {std::move(values)};
  }

  void read_tensor() {
    const std::string_view name = text("tensor name", most_name_bytes);
    if (!names_.insert(name).second) at_.fail("tensor name", fmt::format("'{}' occurs twice", shown(name)));
    const std::string field = fmt::format("tensor '{}'", shown(name));
    const auto axes = at_.number<uint32_t>(field);
    if (axes < 1 || axes > most_gguf_axes) at_.fail(field, fmt::format("{} axes, expects 1 to {}", axes, most_gguf_axes));
    TensorInfo info{.name = std::string(name)};
    for (uint32_t i = 0; i < axes; ++i) {
      const auto size = at_.number<uint64_t>(field);
      if (size > INT64_MAX) at_.fail(field, fmt::format("the size {} is too large", size));
      info.shape.push_back(int64_t(size));
    }
    const std::vector<int64_t> innermost_first(info.shape.begin(), info.shape.end());
    std::ranges::copy(innermost_first.rbegin(), innermost_first.rend(), info.shape.begin());
    const ElementType type = read_element_type(field, info);
    info.bytes = bytes_of(field, info, type);
    const auto offset = at_.number<uint64_t>(field);
    if (offset % alignment_ != 0) at_.fail(field, fmt::format("its offset {} is no multiple of {}", offset, alignment_));
    if (offset > size_) at_.fail(field, fmt::format("its offset {} is behind the end of the file", offset));
    info.offset = int64_t(offset);
    offset_at_.push_back(at_.field_at());
    out_.tensors.push_back(std::move(info));
    out_.types.push_back(type);
  }
  ElementType read_element_type(const std::string& field, TensorInfo& info) {
    const auto id = at_.number<uint32_t>(field);
    const GgufTypeRow* row = gguf_type_row(id);
    if (!row) at_.fail(field, fmt::format("no type of elements has the number {}", id));
    info.type = row->name;
    if (const auto* dtype = std::get_if<DType>(&row->type)) {
      info.dtype = *dtype;
      return *dtype;
    }
    info.dtype = DType::float32;
    if (const auto* format = std::get_if<formats::BlockFormat>(&row->type)) return *format;
    at_.fail(field, fmt::format("its type {} (number {}) was removed from the format; convert the file anew", row->name, id));
  }
  int64_t bytes_of(const std::string& field, const TensorInfo& info, const ElementType& type) {
    const formats::BlockLayout layout = gguf_layout(type);
    if (info.shape.back() % layout.elements != 0)
      at_.fail(field, fmt::format("rows of {} elements are no multiple of the {} of a block of {}", info.shape.back(), layout.elements,
                                  info.type));
    // Without the axes of size 0, whose product would hide that of the others.
    int64_t blocks = 1;
    bool is_empty = false;
    for (const int64_t size : info.shape) {
      is_empty |= size == 0;
      if (size != 0 && __builtin_mul_overflow(blocks, size, &blocks))
        at_.fail(field, fmt::format("({}) are more elements than 64 bits count", fmt::join(info.shape, ", ")));
    }
    blocks /= layout.elements;
    int64_t bytes = 0;
    if (__builtin_mul_overflow(blocks, int64_t(layout.bytes), &bytes))
      at_.fail(field, fmt::format("({}) of {} are more bytes than 64 bits count", fmt::join(info.shape, ", "), info.type));
    return is_empty ? 0 : bytes;
  }

  /// The data begins at the first multiple of the alignment behind the header.
  void place_tensors() {
    if (out_.tensors.empty()) return;
    const uint64_t data = (at_.at() + alignment_ - 1) / alignment_ * alignment_;
    if (data > size_) at_.fail_at(at_.at(), "data", fmt::format("it begins at byte {} of {}", data, size_));
    std::vector<size_t> order;
    for (size_t i = 0; i < out_.tensors.size(); ++i) {
      TensorInfo& t = out_.tensors[i];
      if (uint64_t(t.offset) > size_ - data || uint64_t(t.bytes) > size_ - data - uint64_t(t.offset))
        fail_place(i, fmt::format("its {} bytes from {} on of the data are behind the end of the file", t.bytes, t.offset));
      t.offset += int64_t(data);
      if (t.bytes > 0) order.push_back(i);
    }
    std::ranges::sort(order, {}, [&](size_t i) { return out_.tensors[i].offset; });
    for (size_t i = 1; i < order.size(); ++i) {
      const TensorInfo& before = out_.tensors[order[i - 1]];
      if (out_.tensors[order[i]].offset < before.offset + before.bytes)
        fail_place(order[i], fmt::format("it begins within tensor '{}'", shown(before.name)));
    }
  }
  [[noreturn]] void fail_place(size_t tensor, const std::string& why) {
    at_.fail_at(offset_at_[tensor], fmt::format("offset of tensor '{}'", shown(out_.tensors[tensor].name)), why);
  }

  ByteCursor at_;
  uint64_t size_;
  GgufHeader out_;
  uint64_t alignment_ = default_alignment;
  std::unordered_set<std::string_view> keys_, names_;
  std::vector<uint64_t> offset_at_;  // where the header has those of the tensors
};

}  // namespace

const MetadataValue* find_metadata(const Metadata& metadata, std::string_view key) {
  const auto found = std::ranges::find(metadata, key, [](const auto& pair) -> std::string_view { return pair.first; });
  return found == metadata.end() ? nullptr : &found->second;
}

GgufHeader parse_gguf_header(std::span<const std::byte> file, const std::string& name) { return Parser(file, name).parse(); }

}  // namespace tinygrad::frontend
