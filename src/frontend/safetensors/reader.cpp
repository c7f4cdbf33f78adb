#include "frontend/safetensors/reader.h"

#include <fmt/core.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include <tinygrad/errors.h>

#include "frontend/safetensors/header.h"

namespace tinygrad::frontend {

using formats::Metadata;
using formats::TensorInfo;
using Json = nlohmann::ordered_json;

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

/// The readers of several files, of which some tensors are taken.
class ShardedReader final : public formats::Reader {
 public:
  explicit ShardedReader(const FileBytes& index) {
    const Json json = parse(index);
    if (const auto at = json.find("metadata"); at != json.end() && at->is_object())
      for (const auto& [key, value] : at->items())
        metadata_.push_back({key, {value.is_string() ? value.get<std::string>() : value.dump()}});
    const std::filesystem::path folder = std::filesystem::path(index.name).parent_path();
    std::map<std::string, std::map<std::string, size_t>> places;  // of the tensors of each file
    std::map<std::string, size_t> readers;
    for (const auto& [tensor, value] : json.at("weight_map").items()) {
      const auto file = value.get<std::string>();
      if (const auto [at, is_new] = readers.try_emplace(file, readers_.size()); is_new) {
        readers_.push_back(open_safetensors(FileBytes::map((folder / file).string())));
        const std::vector<TensorInfo>& all = readers_.back()->tensors();
        for (size_t i = 0; i < all.size(); ++i) places[file][all[i].name] = i;
      }
      const auto place = places[file].find(tensor);
      if (place == places[file].end())
        throw FormatError(fmt::format("{}: '{}' is said to be in {}, which lacks it", index.name, tensor, file));
      at_.push_back({readers.at(file), place->second});
      tensors_.push_back(readers_[at_.back().reader]->tensors()[at_.back().place]);
    }
  }

  std::string_view format() const override { return "safetensors"; }
  const Metadata& metadata() const override { return metadata_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  Tensor tensor(size_t place) const override {
    tensors_at(place);
    return readers_[at_[place].reader]->tensor(at_[place].place);
  }

 private:
  struct At {
    size_t reader, place;
  };

  static Json parse(const FileBytes& index) {
    const auto fail = [&](std::string_view why) { throw FormatError(fmt::format("{}: {}", index.name, why)); };
    const char* text = reinterpret_cast<const char*>(index.bytes.data());
    Json json = Json::parse(text, text + index.bytes.size(), nullptr, false);
    if (json.is_discarded() || !json.is_object()) fail("no JSON object");
    const auto map = json.find("weight_map");
    if (map == json.end() || !map->is_object()) fail("an index of safetensors has an object \"weight_map\"");
    for (const auto& [tensor, value] : map->items()) {
      if (!value.is_string()) fail(fmt::format("the file of '{}' is no text", tensor));
      const auto& file = value.get_ref<const std::string&>();
      if (file.empty() || file == "." || file == ".." || file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
        fail(fmt::format("'{}' is said to be in '{}', which is not in the index's folder", tensor, file));
    }
    return json;
  }

  Metadata metadata_;
  std::vector<std::unique_ptr<formats::Reader>> readers_;
  std::vector<At> at_;
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
std::unique_ptr<formats::Reader> open_safetensors_index(const FileBytes& index) { return std::make_unique<ShardedReader>(index); }

}  // namespace tinygrad::frontend
