#include "frontend/safetensors/reader.h"

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "frontend/safetensors/header.h"

namespace tinygrad::frontend {

using formats::Metadata;
using formats::TensorInfo;

namespace {

class SafetensorsReader final : public formats::Reader {
 public:
  explicit SafetensorsReader(const FileBytes& file) : file_(file) {
    nn::state::SafeMetadata header = parse_safetensors_header(file.bytes, file.bytes.size(), file.name);
    for (const auto& [key, value] : header.metadata) metadata_.push_back({key, {value}});
    for (const std::string& name : header.names) {
      const auto& e = header.tensors.at(name);
      tensors_.push_back({.name = name,
                          .type = e.type,
                          .dtype = e.dtype == DType::void_ ? std::optional<DType>() : e.dtype,
                          .shape = e.shape,
                          .offset = header.data_start + e.begin,
                          .bytes = e.end - e.begin});
    }
  }

  std::string_view format() const override { return "safetensors"; }
  const Metadata& metadata() const override { return metadata_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  Tensor tensor(size_t place) const override {
    const TensorInfo& info = tensors_at(place);
    const auto bytes = file_.bytes.subspan(static_cast<size_t>(info.offset), static_cast<size_t>(info.bytes));
    if (!info.dtype)
      throw FormatError(fmt::format("{}: '{}' has the element type {}, which no dtype holds", file_.name, info.name, info.type));
    if (info.dtype == DType::bool_) check_bools(bytes, info.name, file_.name);
    return tensor_over(file_, bytes, *info.dtype, info.shape);
  }

 private:
  FileBytes file_;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace

// The size of a header ends in a zero byte, which JSON does not have.
bool is_safetensors(std::span<const std::byte> bytes) {
  constexpr size_t size_bytes = 8;
  return bytes.size() > size_bytes && bytes[size_bytes - 1] == std::byte{0} && bytes[size_bytes] == std::byte{'{'};
}

bool is_json_object(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t first = text.find_first_not_of(" \n\r\t");
  return first != std::string_view::npos && text[first] == '{';
}

std::unique_ptr<formats::Reader> open_safetensors(const FileBytes& file) { return std::make_unique<SafetensorsReader>(file); }

}  // namespace tinygrad::frontend
