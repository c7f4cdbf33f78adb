#include "frontend/torch/value.h"

#include <array>
#include <cmath>

namespace tinygrad::frontend::torch {

namespace {

constexpr size_t few_entries = 8;  // that are searched one after another

/// One of all keys that Python takes for the same.
Value canonical(const Value& key) {
  if (const bool* flag = std::get_if<bool>(&key)) return int64_t{*flag};
  if (const double* number = std::get_if<double>(&key))
    if (std::abs(*number) < 9e18 && *number == std::trunc(*number)) return static_cast<int64_t>(*number);
  return key;
}

}  // namespace

std::string_view kind_of(const Value& value) {
  constexpr std::array<std::string_view, std::variant_size_v<Value>> names{
      "None",   "a boolean", "an integer", "a number", "a text", "an integer", "bytes",   "a complex number",
      "a name", "a list",    "a tuple",    "a set",    "a dict", "a storage",  "a tensor"};
  return names[value.index()];
}

bool is_mutable(const Value& value) {
  return std::holds_alternative<List*>(value) || std::holds_alternative<Set*>(value) || std::holds_alternative<Dict*>(value);
}

void Dict::set(const Value& key, const Value& value) {
  const Value wanted = canonical(key);
  if (entries_.size() <= few_entries) {
    for (auto& [known, held] : entries_)
      if (canonical(known) == wanted) {
        held = value;
        return;
      }
    entries_.emplace_back(key, value);
    return;
  }
  for (size_t i = places_.size(); i < entries_.size(); ++i) places_.try_emplace(canonical(entries_[i].first), i);
  const auto [at, is_new] = places_.try_emplace(wanted, entries_.size());
  if (is_new)
    entries_.emplace_back(key, value);
  else
    entries_[at->second].second = value;
}

std::optional<Value> Dict::find(std::string_view key) const {
  for (const auto& [known, value] : entries_)
    if (const auto* text = std::get_if<const Text*>(&known); text && (*text)->text == key) return value;
  return {};
}

const Text* Heap::text(std::string_view text) {
  if (const auto known = text_of_.find(text); known != text_of_.end()) return known->second;
  const Text* made = &texts_.emplace_back(Text{std::string(text)});
  text_of_.emplace(made->text, made);
  return made;
}

void Heap::copies(size_t count, const Place& place) {
  if (count > copies_left_) place.fail("what calls are given is, all together, more than the file holds");
  copies_left_ -= count;
}

}  // namespace tinygrad::frontend::torch
