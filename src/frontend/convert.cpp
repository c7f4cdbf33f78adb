// What is in a model file, written as another one.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include <tinygrad/errors.h>
#include <tinygrad/formats.h>

#include "frontend/gguf/gguf.h"
#include "frontend/gguf/types.h"
#include "frontend/npy/header.h"
#include "frontend/npy/npy.h"
#include "frontend/outgoing.h"
#include "frontend/safetensors/header.h"
#include "frontend/safetensors/write.h"

namespace tinygrad::formats {

using frontend::OutgoingTensor;
using frontend::TensorAt;

namespace {

enum class Format : uint8_t { safetensors, gguf, npz };

Format format_of(std::string_view path) {
  if (path.ends_with(".safetensors")) return Format::safetensors;
  if (path.ends_with(".gguf")) return Format::gguf;
  if (path.ends_with(".npz")) return Format::npz;
  throw ValueError(fmt::format("convert: '{}' ends in none of .safetensors, .gguf and .npz, which say what is to be written", path));
}

bool has(Format format, DType dtype) {
  switch (format) {
    case Format::safetensors: return frontend::safetensors_name(dtype).has_value();
    case Format::gguf: return frontend::gguf_type_id(dtype).has_value();
    case Format::npz: return frontend::has_numpy(dtype);
  }
  return false;
}

/// A dtype that the format has and that holds all values of another one; that one where there is none.
DType held_as(Format format, DType dtype) {
  static constexpr auto wider = std::to_array<std::pair<DType, DType>>({
      {DType::bool_, DType::int8},
      {DType::uint8, DType::int16},
      {DType::uint16, DType::int32},
      {DType::uint32, DType::int64},
      {DType::fp8e4m3, DType::float16},
      {DType::fp8e5m2, DType::float16},
      {DType::fp8e4m3fnuz, DType::float16},
      {DType::fp8e5m2fnuz, DType::float16},
      {DType::bfloat16, DType::float32},
  });
  if (has(format, dtype)) return dtype;
  const auto* next = std::ranges::find(wider, dtype, &std::pair<DType, DType>::first);
  return next == wider.end() ? dtype : next->second;
}

/// Objects become their entries, with the names on the way joined by dots.
void flatten(const Metadata& metadata, const std::string& prefix, Metadata& out) {
  for (const auto& [name, value] : metadata) {
    if (const auto* inner = std::get_if<Metadata>(&value.value))
      flatten(*inner, prefix + name + ".", out);
    else
      out.push_back({prefix + name, value});
  }
}
Metadata flat(const Metadata& metadata) {
  Metadata out;
  flatten(metadata, "", out);
  return out;
}

std::map<std::string, std::string> as_texts(const Metadata& metadata) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : flat(metadata)) {
    const auto* text = std::get_if<std::string>(&value.value);
    out.emplace(name, text ? *text : to_json(value));
  }
  return out;
}

/// Whether GGUF has such a value: numbers, booleans, texts, and lists of one kind of them.
bool is_gguf_value(const MetadataValue& value) {
  if (const auto* list = std::get_if<std::vector<MetadataValue>>(&value.value))
    return std::ranges::all_of(*list, [&](const MetadataValue& e) {
      return e.value.index() == list->front().value.index() && !std::holds_alternative<Metadata>(e.value) && is_gguf_value(e);
    });
  return !std::holds_alternative<std::monostate>(value.value);
}

Metadata as_gguf(const Metadata& metadata) {
  Metadata out;
  for (auto& [name, value] : flat(metadata)) {
    if (name.starts_with("split.")) continue;  // of one of several files, which all become one
    if (name == frontend::alignment_key && !std::holds_alternative<uint64_t>(value.value)) continue;
    out.push_back({name, is_gguf_value(value) ? value : MetadataValue{to_json(value)}});
  }
  return out;
}

/// What is written of a reader's tensors.
class Conversion {
 public:
  Conversion(const Reader& file, Format format, const ConvertOptions& options) : file_(file), format_(format), options_(options) {
    for (size_t i = 0; i < file.tensors().size(); ++i) tensors_.push_back(plan(i));
    if (options.quantize && report_.quantized == 0)
      throw ValueError(fmt::format("convert: there is nothing to quantize to {}: no floats of two axes or more, the last a multiple of {}",
                                   layout_of(*options.quantize).name, layout_of(*options.quantize).elements));
  }

  ConvertReport write(const std::string& path) {
    const TensorAt memory = [&](size_t place) { return memory_of(place); };
    switch (format_) {
      case Format::safetensors: frontend::write_safetensors(tensors_, path, as_texts(file_.metadata()), memory); break;
      case Format::gguf: frontend::write_gguf(tensors_, path, as_gguf(file_.metadata()), memory); break;
      case Format::npz: frontend::write_npz(tensors_, path, memory); break;
    }
    return report_;
  }

 private:
  OutgoingTensor plan(size_t place) {
    const TensorInfo& info = file_.tensors()[place];
    if (!info.dtype) file_.tensor(place);  // says why
    OutgoingTensor out{.name = info.name, .type = type_of(place), .shape = info.shape};
    report_.tensors += 1;
    report_.bytes += out.bytes();
    return out;
  }
  frontend::ElementType type_of(size_t place) {
    const TensorInfo& info = file_.tensors()[place];
    if (options_.quantize && is_float(info.dtype.value()) && info.shape.size() >= 2 &&
        info.shape.back() % layout_of(*options_.quantize).elements == 0) {
      report_.quantized += 1;
      return *options_.quantize;
    }
    if (format_ == Format::gguf)
      if (const auto blocks = file_.quantized(place)) return blocks->format;
    return held_as(format_, info.dtype.value());
  }

  Tensor memory_of(size_t place) const {
    if (options_.progress) options_.progress(file_.tensors()[place]);
    const OutgoingTensor& out = tensors_[place];
    if (const auto* dtype = std::get_if<DType>(&out.type)) return file_.tensor(place).cast(*dtype);
    const auto format = std::get<BlockFormat>(out.type);
    if (const auto blocks = file_.quantized(place); blocks && blocks->format == format) return blocks->blocks;
    return quantize(file_.tensor(place), format).blocks;
  }

  const Reader& file_;
  const Format format_;
  const ConvertOptions& options_;
  std::vector<OutgoingTensor> tensors_;
  ConvertReport report_;
};

}  // namespace

ConvertReport convert(const Reader& file, const std::string& path, const ConvertOptions& options) {
  const Format format = format_of(path);
  if (options.quantize && format != Format::gguf)
    throw ValueError(fmt::format("convert: '{}' cannot hold blocks, which only a .gguf file does", path));
  if (options.quantize && !can_quantize(*options.quantize))
    throw ValueError(
        fmt::format("convert: values are not made {}, only Q8_0, Q4_0, Q4_K, Q6_K and MXFP4", layout_of(*options.quantize).name));
  return Conversion(file, format, options).write(path);
}

}  // namespace tinygrad::formats
