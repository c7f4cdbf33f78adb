#include "frontend/safetensors/header.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include <tinygrad/errors.h>

#include "frontend/safetensors/counted.h"

namespace tinygrad::frontend {

using nn::state::SafeMetadata;
using Json = nlohmann::json;

namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are little-endian and used in place");

constexpr size_t size_bytes = 8;
constexpr size_t most_header_bytes = 100'000'000;  // as the format says
constexpr const char* metadata_key = "__metadata__";

/// Types that there is no dtype of, and bits of an element.
constexpr std::array<std::pair<std::string_view, int64_t>, 5> foreign_types{
    {{"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E8M0", 8}, {"C64", 64}}};

constexpr std::array<std::pair<std::string_view, DType>, 17> dtype_names{{{"BOOL", DType::bool_},
                                                                          {"I8", DType::int8},
                                                                          {"U8", DType::uint8},
                                                                          {"I16", DType::int16},
                                                                          {"U16", DType::uint16},
                                                                          {"I32", DType::int32},
                                                                          {"U32", DType::uint32},
                                                                          {"I64", DType::int64},
                                                                          {"U64", DType::uint64},
                                                                          {"F8_E4M3", DType::fp8e4m3},
                                                                          {"F8_E5M2", DType::fp8e5m2},
                                                                          {"F8_E4M3FNUZ", DType::fp8e4m3fnuz},
                                                                          {"F8_E5M2FNUZ", DType::fp8e5m2fnuz},
                                                                          {"F16", DType::float16},
                                                                          {"BF16", DType::bfloat16},
                                                                          {"F32", DType::float32},
                                                                          {"F64", DType::float64}}};

/// Takes the header's events and refuses, at once, what is not of its form: so nothing is built from hostile JSON but entries.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(SafeMetadata& out, const CountedText& text, const std::string& name) : out_(out), text_(text), name_(name) {}

  /// The bytes behind the names of the tensors, in the order of the file.
  const std::vector<size_t>& places() const { return places_; }

  bool start_object(size_t) override {
    if (place_ == Place::outside)
      place_ = Place::top;
    else if (place_ == Place::value && is_metadata_)
      place_ = Place::metadata;
    else if (place_ == Place::value)
      place_ = Place::entry;
    else
      refuse("an object");
    return true;
  }
  bool key(std::string& text) override {
    key_ = text;
    if (place_ == Place::top) {
      is_metadata_ = text == metadata_key;
      if (is_metadata_ ? std::exchange(has_metadata_, true) : !out_.tensors.try_emplace(text).second)
        fail(fmt::format("the name '{}' occurs twice", text));
      if (!is_metadata_) {
        out_.names.push_back(text);
        places_.push_back(text_.byte());
      }
      tensor_ = text;
      has_ = {};
      place_ = Place::value;
    } else if (place_ == Place::entry) {
      if (text != "dtype" && text != "shape" && text != "data_offsets") fail(fmt::format("'{}' has an unknown field '{}'", tensor_, text));
      bool& has = text == "dtype" ? has_.dtype : text == "shape" ? has_.shape : has_.offsets;
      if (std::exchange(has, true)) fail(fmt::format("'{}' has two fields '{}'", tensor_, text));
    } else if (out_.metadata.contains(text)) {
      fail(fmt::format("the name '{}' occurs twice in {}", text, metadata_key));
    }
    return true;
  }
  bool string(std::string& text) override {
    if (place_ == Place::metadata) {
      out_.metadata[key_] = text;
      return true;
    }
    if (place_ != Place::entry || key_ != "dtype") refuse("a text");
    const auto* known = std::find_if(dtype_names.begin(), dtype_names.end(), [&](const auto& d) { return d.first == text; });
    if (known != dtype_names.end()) entry().dtype = known->second;
    entry().type = text;
    return true;
  }
  bool start_array(size_t) override {
    if (place_ != Place::entry || key_ == "dtype") refuse("a list");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    offsets_ = 0;
    return true;
  }
  bool number_unsigned(uint64_t value) override {
    if (value > INT64_MAX) fail(fmt::format("'{}' has the number {}, which is too large", tensor_, value));
    const auto number = static_cast<int64_t>(value);
    if (place_ == Place::shape)
      entry().shape.push_back(number);
    else if (place_ == Place::offsets && offsets_ < 2)
      (offsets_++ == 0 ? entry().begin : entry().end) = number;
    else
      refuse("a number");
    return true;
  }
  bool end_array() override {
    if (place_ == Place::offsets && offsets_ != 2) fail(fmt::format("'{}' has {} data_offsets, expected 2", tensor_, offsets_));
    place_ = Place::entry;
    return true;
  }
  bool end_object() override {
    if (place_ == Place::entry && !(has_.dtype && has_.shape && has_.offsets))
      fail(fmt::format("'{}' lacks one of dtype, shape and data_offsets", tensor_));
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }
  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a boolean"); }
  bool number_integer(int64_t) override { refuse("a negative number"); }
  bool number_float(double, const std::string&) override { refuse("a fraction"); }
  bool binary(Json::binary_t&) override { refuse("binary data"); }
  bool parse_error(size_t, const std::string&, const Json::exception& e) override { fail(fmt::format("no JSON: {}", e.what())); }

 private:
  enum class Place : uint8_t { outside, top, value, metadata, entry, shape, offsets };

  SafeMetadata::Entry& entry() { return out_.tensors[tensor_]; }
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(fmt::format("{}: the header at byte {}: {}", name_, text_.byte(), what));
  }
  [[noreturn]] void refuse(std::string_view what) const { fail(fmt::format("{} where none is expected, at '{}'", what, key_)); }

  SafeMetadata& out_;
  const CountedText& text_;
  const std::string& name_;
  Place place_ = Place::outside;
  std::string key_, tensor_;
  std::vector<size_t> places_;
  bool is_metadata_ = false, has_metadata_ = false;
  struct {
    bool dtype = false, shape = false, offsets = false;
  } has_;
  int offsets_ = 0;
};

/// Bits of an element; nothing for a type that is not known.
std::optional<int64_t> element_bits(const SafeMetadata::Entry& e) {
  if (e.dtype != DType::void_) return static_cast<int64_t>(8 * itemsize(e.dtype));
  const auto* known = std::find_if(foreign_types.begin(), foreign_types.end(), [&](const auto& t) { return t.first == e.type; });
  return known == foreign_types.end() ? std::optional<int64_t>() : known->second;
}

/// Whether a tensor has the bytes that it must have. Of a type that is not known, no more is asked than that 64 bits count its elements.
bool has_its_bytes(const SafeMetadata::Entry& e) {
  const std::optional<int64_t> bits = element_bits(e);
  int64_t count = bits.value_or(1), held = 0;
  for (const int64_t s : e.shape)
    if (__builtin_mul_overflow(count, s, &count)) return false;
  return !bits || (!__builtin_mul_overflow(e.end - e.begin, int64_t{8}, &held) && count == held);
}

/// `places` are the bytes of the header at which the tensors stand, in the order of their names.
void check_offsets(const SafeMetadata& header, const std::vector<size_t>& places, int64_t data_bytes, const std::string& name) {
  const auto fail = [&](const std::string& tensor, const std::string& what) {
    const auto place = std::find(header.names.begin(), header.names.end(), tensor) - header.names.begin();
    throw FormatError(fmt::format("{}: the header at byte {}: '{}' {}", name, places[static_cast<size_t>(place)], tensor, what));
  };
  std::vector<const std::pair<const std::string, SafeMetadata::Entry>*> order;
  for (const auto& item : header.tensors) {
    const SafeMetadata::Entry& e = item.second;
    if (e.begin > e.end || e.end > data_bytes || !has_its_bytes(e))
      fail(item.first, fmt::format("is {} ({}) in the bytes {} to {} of {}, which does not fit",
                                   e.dtype == DType::void_ ? e.type : repr(e.dtype), fmt::join(e.shape, ", "), e.begin, e.end, data_bytes));
    order.push_back(&item);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  int64_t at = 0;
  for (const auto* item : order) {
    if (item->second.begin != at) fail(item->first, fmt::format("begins at {}, what is before it ends at {}", item->second.begin, at));
    at = item->second.end;
  }
  if (at != data_bytes)
    throw FormatError(
        fmt::format("{}: the data at byte {}: {} bytes of data, the tensors have {}", name, header.data_start + at, data_bytes, at));
}

}  // namespace

std::optional<std::string_view> safetensors_name(DType dtype) {
  for (const auto& [text, known] : dtype_names)
    if (known == dtype) return text;
  return {};
}

size_t safetensors_data_start(std::span<const std::byte> first, size_t file_bytes, const std::string& name) {
  if (file_bytes < size_bytes || first.size() < size_bytes)
    throw FormatError(fmt::format("{}: the size of the header at byte 0: {} bytes, too short for safetensors", name, file_bytes));
  uint64_t size = 0;
  std::memcpy(&size, first.data(), size_bytes);
  if (size > most_header_bytes || size > file_bytes - size_bytes)
    throw FormatError(fmt::format("{}: the size of the header at byte 0: a header of {} bytes in a file of {}: no safetensors, or cut off",
                                  name, size, file_bytes));
  return size_bytes + size;
}

SafeMetadata parse_safetensors_header(std::span<const std::byte> file, size_t file_bytes, const std::string& name) {
  const size_t end = safetensors_data_start(file, file_bytes, name);
  CountedText text({reinterpret_cast<const char*>(file.data()) + size_bytes, end - size_bytes}, size_bytes);
  if (end == size_bytes || file[size_bytes] != std::byte{'{'})
    throw FormatError(fmt::format("{}: the header at byte {}: it does not begin with a brace", name, size_bytes));
  SafeMetadata header;
  header.data_start = static_cast<int64_t>(end);
  HeaderReader reader(header, text, name);
  Json::sax_parse(text.begin(), text.end(), &reader);
  check_offsets(header, reader.places(), static_cast<int64_t>(file_bytes) - header.data_start, name);
  return header;
}

DType safetensors_dtype(const SafeMetadata::Entry& entry, const std::string& tensor, const std::string& file) {
  if (entry.dtype != DType::void_) return entry.dtype;
  throw FormatError(fmt::format("{}: '{}' has the dtype '{}', which is not supported; formats::open() gives the other tensors", file,
                                tensor, entry.type));
}

void check_bools(std::span<const std::byte> bytes, const std::string& tensor, const std::string& file) {
  const auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad != bytes.end())
    throw FormatError(
        fmt::format("{}: '{}' at its byte {}: the boolean {}, expects 0 or 1", file, tensor, bad - bytes.begin(), static_cast<int>(*bad)));
}

std::string make_safetensors_header(const SafeMetadata& contents) {
  const auto quoted = [](const std::string& text) {
    try {
      return Json(text).dump();
    } catch (const Json::exception&) {
      throw ValueError("safe_save: a name or a text of the metadata is not UTF-8");
    }
  };
  std::string json = "{";
  if (!contents.metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : contents.metadata) pairs.push_back(quoted(key) + ":" + quoted(value));
    json += fmt::format("\"{}\":{{{}}}", metadata_key, fmt::join(pairs, ","));
  }
  std::vector<std::string> names = contents.names;
  if (names.empty())
    for (const auto& [name, e] : contents.tensors) names.push_back(name);
  for (const std::string& name : names) {
    const SafeMetadata::Entry& e = contents.tensors.at(name);
    json += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", json.size() > 1 ? "," : "", quoted(name),
                        safetensors_name(e.dtype).value(), fmt::join(e.shape, ","), e.begin, e.end);
  }
  json += "}";
  json.append((size_bytes - json.size() % size_bytes) % size_bytes, ' ');  // so that the data is aligned
  const uint64_t size = json.size();
  return std::string(reinterpret_cast<const char*>(&size), size_bytes) + json;
}

}  // namespace tinygrad::frontend
