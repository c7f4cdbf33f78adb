// The index of several files of safetensors.
#include <fmt/core.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include <tinygrad/errors.h>

#include "frontend/safetensors/counted.h"
#include "frontend/safetensors/reader.h"

namespace tinygrad::frontend {

using formats::Metadata;
using formats::TensorInfo;
using Json = nlohmann::ordered_json;

namespace {

constexpr int most_depth = 100;
constexpr const char* no_map = "an index of safetensors has an object \"weight_map\"";

bool is_in_its_folder(const std::string& file) {
  return !file.empty() && file != "." && file != ".." && file.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

/// An object whose "weight_map" has names of files in the index's folder. What is not of this form is refused when it is read.
Json parse_index(const FileBytes& index) {
  CountedText text({reinterpret_cast<const char*>(index.bytes.data()), index.bytes.size()}, 0);
  const auto fail = [&](const std::string& what) {
    throw FormatError(fmt::format("{}: the index at byte {}: {}", index.name, text.byte(), what));
  };
  std::vector<std::set<std::string>> names;  // of the objects around
  std::string field, tensor;
  const auto check = [&](int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    if (depth > most_depth) fail(fmt::format("values that are more than {} deep", most_depth));
    if (depth == 1 && field == "weight_map" && (event == Event::value || event == Event::array_start)) fail(no_map);
    if (depth == 2 && field == "weight_map") {
      if (event == Event::key) {
        tensor = value.get<std::string>();
      } else if (event == Event::value && value.is_string()) {
        if (const auto file = value.get<std::string>(); !is_in_its_folder(file))
          fail(fmt::format("'{}' is said to be in '{}', which is not in the index's folder", tensor, file));
      } else {
        fail(fmt::format("the file of '{}' is no text", tensor));
      }
    }
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event == Event::key) {
      if (depth == 1) field = value.get<std::string>();
      if (!names.back().insert(value.get<std::string>()).second) fail(fmt::format("the name '{}' occurs twice", value.get<std::string>()));
    }
    return true;
  };
  Json json = Json::parse(text.begin(), text.end(), check, false);
  if (json.is_discarded() || !json.is_object()) fail("no JSON object");
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object()) fail(no_map);
  return json;
}

/// The readers of several files, of which some tensors are taken.
class ShardedReader final : public formats::Reader {
 public:
  explicit ShardedReader(const FileBytes& index) {
    const Json json = parse_index(index);
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

  Metadata metadata_;
  std::vector<std::unique_ptr<formats::Reader>> readers_;
  std::vector<At> at_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace

std::unique_ptr<formats::Reader> open_safetensors_index(const FileBytes& index) { return std::make_unique<ShardedReader>(index); }

}  // namespace tinygrad::frontend
