// Tensors from and to GGUF files.
#include "frontend/gguf/gguf.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include <tinygrad/errors.h>

#include "frontend/gguf/header.h"

namespace tinygrad::frontend {

using formats::BlockFormat;
using formats::Metadata;
using formats::MetadataValue;
using formats::QuantizedTensor;
using formats::TensorInfo;

namespace {

class GgufReader final : public formats::Reader {
 public:
  GgufReader(const FileBytes& file, GgufHeader header) : metadata_(std::move(header.metadata)) {
    add(file, std::move(header.tensors), header.types);
  }
  /// The tensors of a further file.
  void add(const FileBytes& file, std::vector<TensorInfo> tensors, const std::vector<ElementType>& types) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!names_.insert(tensors[i].name).second)
        throw FormatError(fmt::format("{}: tensor '{}' is in two of the files", file.name, tensors[i].name));
      tensors_.push_back(std::move(tensors[i]));
      places_.push_back({files_.size(), types[i]});
    }
    files_.push_back(file);
  }

  std::string_view format() const override { return "gguf"; }
  const Metadata& metadata() const override { return metadata_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  Tensor tensor(size_t place) const override {
    const TensorInfo& info = tensors_at(place);
    if (const auto* dtype = std::get_if<DType>(&places_[place].type)) return over(place, *dtype, info.shape);
    return quantized(place)->dequantize();
  }
  std::optional<QuantizedTensor> quantized(size_t place) const override {
    const TensorInfo& info = tensors_at(place);
    const auto* format = std::get_if<BlockFormat>(&places_[place].type);
    if (!format) return {};
    Sizes blocks = info.shape;
    blocks.back() /= layout_of(*format).elements;
    blocks.push_back(layout_of(*format).bytes);
    return QuantizedTensor{.format = *format, .shape = info.shape, .blocks = over(place, DType::uint8, blocks)};
  }

 private:
  struct Place {
    size_t file;
    ElementType type;
  };
  Tensor over(size_t place, DType dtype, const Sizes& shape) const {
    const FileBytes& file = files_[places_[place].file];
    const TensorInfo& info = tensors_[place];
    return tensor_over(file, file.bytes.subspan(size_t(info.offset), size_t(info.bytes)), dtype, shape);
  }

  std::vector<FileBytes> files_;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::vector<Place> places_;
  std::unordered_set<std::string> names_;
};

/// A number of the metadata that is not negative; nothing where there is none of the name.
std::optional<uint64_t> number_in(const GgufHeader& header, std::string_view key, const std::string& file) {
  const MetadataValue* value = find_metadata(header.metadata, key);
  if (!value) return {};
  if (const auto* number = std::get_if<uint64_t>(&value->value)) return *number;
  if (const auto* number = std::get_if<int64_t>(&value->value); number && *number >= 0) return uint64_t(*number);
  throw FormatError(fmt::format("{}: metadata '{}' is no number, or less than 0", file, key));
}

/// Which of how many files one is, the first being 0.
struct Part {
  uint64_t number = 0, count = 1;
};
Part part_of(const GgufHeader& header, const std::string& file) {
  const Part part{number_in(header, "split.no", file).value_or(0), number_in(header, "split.count", file).value_or(1)};
  constexpr uint64_t most = 99999;  // that names have digits for
  if (part.count > most || part.number >= std::max<uint64_t>(part.count, 1))
    throw FormatError(fmt::format("{}: metadata 'split.no' and 'split.count' are {} of {}", file, part.number, part.count));
  return part;
}
std::string ending_of(const Part& part) { return fmt::format("-{:05}-of-{:05}.gguf", part.number + 1, part.count); }

/// The others of the files whose first one is `path`.
void add_others(GgufReader& reader, const std::string& path, uint64_t count) {
  const std::string_view stem = std::string_view(path).substr(0, path.size() - ending_of({0, count}).size());
  for (uint64_t i = 1; i < count; ++i) {
    const FileBytes file = FileBytes::map(fmt::format("{}{}", stem, ending_of({i, count})));
    GgufHeader header = parse_gguf_header(file.bytes, file.name);
    const Part part = part_of(header, file.name);
    if (part.number != i || part.count != count)
      throw FormatError(fmt::format("{}: it says that it is file {} of {}, by its name it is {} of {}", file.name, part.number + 1,
                                    part.count, i + 1, count));
    reader.add(file, std::move(header.tensors), header.types);
  }
}

}  // namespace

std::unique_ptr<formats::Reader> open_gguf(const FileBytes& file) {
  GgufHeader header = parse_gguf_header(file.bytes, file.name);
  if (const Part part = part_of(header, file.name); part.count > 1)
    throw FormatError(fmt::format("{}: it is one of {} files that belong together; open the first by its path", file.name, part.count));
  return std::make_unique<GgufReader>(file, std::move(header));
}

std::unique_ptr<formats::Reader> open_gguf(const std::string& path) {
  const FileBytes file = FileBytes::map(path);
  GgufHeader header = parse_gguf_header(file.bytes, path);
  const Part part = part_of(header, path);
  if (part.count <= 1) return std::make_unique<GgufReader>(file, std::move(header));
  if (part.number != 0)
    throw FormatError(fmt::format("{}: it is file {} of {}; open the first, whose name ends in {}", path, part.number + 1, part.count,
                                  ending_of({0, part.count})));
  if (!path.ends_with(ending_of(part)))
    throw FormatError(fmt::format("{}: it is the first of {} files, so that its name should end in {}", path, part.count, ending_of(part)));
  const std::optional<uint64_t> tensors = number_in(header, "split.tensors.count", path);
  auto reader = std::make_unique<GgufReader>(file, std::move(header));
  add_others(*reader, path, part.count);
  if (tensors && *tensors != reader->tensors().size())
    throw FormatError(fmt::format("{}: metadata 'split.tensors.count' is {}, the {} files have {}", path, *tensors, part.count,
                                  reader->tensors().size()));
  return reader;
}

bool is_gguf(std::span<const std::byte> bytes) {
  constexpr std::string_view magic = "GGUF";
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

void write_gguf(std::span<const OutgoingTensor> tensors, const std::string& path, const Metadata& metadata, const TensorAt& memory) {
  const GgufBeginning beginning = make_gguf_header(metadata, tensors);
  AtomicFile file(path);
  file.write(beginning.bytes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const HostElements elements(memory(i));
    write_in_pieces(file, elements.bytes);
    const uint64_t end = i + 1 < tensors.size() ? beginning.offsets[i + 1] : beginning.data_bytes;
    file.write(std::string(size_t(end - beginning.offsets[i]) - elements.bytes.size(), '\0'));
  }
  file.commit();
}

}  // namespace tinygrad::frontend

namespace tinygrad::formats {

namespace {

/// What the file has of it: values, or blocks.
const Tensor& memory_of(const NamedTensor& tensor) {
  const auto* quantized = std::get_if<QuantizedTensor>(&tensor.value);
  return quantized ? quantized->blocks : std::get<Tensor>(tensor.value);
}

frontend::OutgoingTensor entry_of(const NamedTensor& tensor) {
  if (const auto* quantized = std::get_if<QuantizedTensor>(&tensor.value)) {
    quantized->check("gguf_save");
    return {tensor.name, quantized->format, quantized->shape};
  }
  const Tensor& values = std::get<Tensor>(tensor.value);
  return {tensor.name, values.dtype(), values.shape()};
}

}  // namespace

void gguf_save(std::span<const NamedTensor> tensors, const std::string& path, const Metadata& metadata) {
  std::vector<frontend::OutgoingTensor> entries;
  std::vector<Tensor> memory;
  for (const NamedTensor& tensor : tensors) {
    entries.push_back(entry_of(tensor));
    memory.push_back(memory_of(tensor));
  }
  frontend::write_gguf(entries, path, metadata, frontend::realized_together(std::move(memory)));
}

void gguf_save(const nn::state::StateDict& tensors, const std::string& path, const Metadata& metadata) {
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
  gguf_save(named, path, metadata);
}

}  // namespace tinygrad::formats

namespace tinygrad::nn::state {

namespace {
std::pair<formats::Metadata, StateDict> loaded(const formats::Reader& file) {
  StateDict tensors;
  for (size_t i = 0; i < file.tensors().size(); ++i) tensors.emplace(file.tensors()[i].name, file.tensor(i));
  return {file.metadata(), std::move(tensors)};
}
}  // namespace

std::pair<formats::Metadata, StateDict> gguf_load(const std::string& path) { return loaded(*frontend::open_gguf(path)); }
std::pair<formats::Metadata, StateDict> gguf_load(const Tensor& bytes) {
  return loaded(*frontend::open_gguf(frontend::FileBytes::of(bytes)));
}

}  // namespace tinygrad::nn::state
