#pragma once
/// Fields of a JSON document whose errors name where they are.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <tinygrad/errors.h>

namespace tinygrad::torch_export {

using Json = nlohmann::json;

/// A value and its path in the document, "graph_module.graph.nodes[3].target". Every method throws FormatError for a value of another kind.
class Field {
 public:
  Field(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  [[noreturn]] void fail(std::string_view why) const { throw FormatError(fmt::format("{}: {}", path_, why)); }

  bool is_null() const { return value_->is_null(); }
  bool is_text() const { return value_->is_string(); }
  bool has(const std::string& key) const { return value_->is_object() && value_->contains(key) && !value_->at(key).is_null(); }
  Field at(const std::string& key) const {
    expect(value_->is_object(), "an object");
    const auto found = value_->find(key);
    if (found == value_->end()) fail(fmt::format("'{}' is missing", key));
    return {*found, path_ + '.' + key};
  }
  std::vector<Field> items() const {
    expect(value_->is_array(), "a list");
    std::vector<Field> out;
    for (size_t i = 0; i < value_->size(); ++i) out.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
    return out;
  }
  std::vector<std::pair<std::string, Field>> entries() const {
    expect(value_->is_object(), "an object");
    std::vector<std::pair<std::string, Field>> out;
    for (const auto& [key, value] : value_->items()) out.emplace_back(key, Field(value, path_ + '.' + key));
    return out;
  }
  /// The only entry of an object that stands for one of several alternatives.
  std::pair<std::string, Field> alternative() const {
    const auto all = entries();
    if (all.size() != 1) fail(fmt::format("{} alternatives, expects one", all.size()));
    return all[0];
  }

  std::string text() const {
    expect(value_->is_string(), "a text");
    return value_->get<std::string>();
  }
  int64_t integer() const {
    expect(value_->is_number_integer() && !(value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX), "an integer of 64 bits");
    return value_->get<int64_t>();
  }
  bool boolean() const {
    expect(value_->is_boolean(), "a bool");
    return value_->get<bool>();
  }
  /// "Infinity", "-Infinity" and "NaN" are texts there.
  double number() const;
  /// FormatError for a field with a value that is none of these; what has none says nothing.
  void allow(const std::set<std::string_view>& known) const;

 private:
  void expect(bool holds, std::string_view what) const {
    if (!holds) fail(fmt::format("{} where {} is expected", value_->type_name(), what));
  }
  const Json* value_;
  std::string path_;
};

/// The document in these bytes. FormatError for what is no JSON, and for more than 200 levels of it.
Json parse_json(std::string_view text, const std::string& name);

}  // namespace tinygrad::torch_export
