// Values of metadata as text.
#include <nlohmann/json.hpp>

#include <tinygrad/formats.h>

namespace tinygrad::formats {

using Json = nlohmann::ordered_json;

static Json json_of(const MetadataValue& value) {
  return std::visit(
      [](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, Metadata>) {
          Json out = Json::object();
          for (const MetadataEntry& e : v) out[e.first] = json_of(e.second);
          return out;
        } else if constexpr (std::is_same_v<T, std::vector<MetadataValue>>) {
          Json out = Json::array();
          for (const MetadataValue& e : v) out.push_back(json_of(e));
          return out;
        } else {
          return v;
        }
      },
      value.value);
}

std::string to_json(const MetadataValue& value) { return json_of(value).dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace tinygrad::formats
