#include "frontend/torch/flatten.h"

#include <fmt/core.h>

#include <charconv>
#include <span>

#include "frontend/torch/globals.h"

namespace tinygrad::frontend::torch {

namespace {

using formats::Metadata;
using formats::MetadataValue;

template <class... F>
struct Cases : F... {
  using F::operator()...;
};

constexpr int most_deep = 100;
constexpr uint64_t value_cost = sizeof(MetadataValue);

class Flattener {
 public:
  Flattener(uint64_t budget, Heap& heap, std::string_view file) : budget_(budget), heap_(heap), file_(file) {}

  Flattened take(const Value& root) {
    std::string path;
    std::optional<MetadataValue> rest = visit(root, path, 0);
    if (rest && !std::holds_alternative<Metadata>(rest->value)) {
      // A list's places are names, as they are in the paths of tensors.
      Metadata named;
      if (auto* items = std::get_if<std::vector<MetadataValue>>(&rest->value))
        for (size_t i = 0; i < items->size(); ++i) named.emplace_back(fmt::format("{}", i), std::move((*items)[i]));
      else
        named.emplace_back("value", std::move(*rest));
      rest = MetadataValue{std::move(named)};
    }
    if (rest) out_.metadata = std::move(std::get<Metadata>(rest->value));
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string_view path, std::string_view why) const {
    constexpr size_t most = 200;
    throw FormatError(fmt::format("{}: '{}': {}", file_, path.substr(0, most), why));
  }
  void spend(uint64_t cost, std::string_view path) {
    if (cost > budget_) fail(path, "shared values, written out, are far more than the file holds");
    budget_ -= cost;
  }

  /// What is no tensor of a value; nothing where all of it are tensors.
  std::optional<MetadataValue> visit(const Value& value, std::string& path, int depth) {
    if (depth > most_deep) fail(path, fmt::format("values that are more than {} deep, or in themselves", most_deep));
    spend(value_cost, path);
    const auto plain = [](auto v) { return MetadataValue{std::move(v)}; };
    return std::visit(Cases{
                          [&](std::monostate) -> std::optional<MetadataValue> { return MetadataValue{}; },
                          [&](bool v) -> std::optional<MetadataValue> { return plain(v); },
                          [&](int64_t v) -> std::optional<MetadataValue> { return plain(v); },
                          [&](double v) -> std::optional<MetadataValue> { return plain(v); },
                          [&](const Text* v) -> std::optional<MetadataValue> { return plain(text(v->text, path)); },
                          [&](const LongInteger* v) -> std::optional<MetadataValue> { return integer(v->digits, path); },
                          [&](const Bytes* v) -> std::optional<MetadataValue> { return plain(latin1(v->bytes, path)); },
                          [&](const Complex* v) -> std::optional<MetadataValue> {
                            return plain(std::vector<MetadataValue>{plain(v->real), plain(v->imaginary)});
                          },
                          [&](const Global* v) -> std::optional<MetadataValue> { return plain(text(v->name, path)); },
                          [&](const List* v) { return visit_items(v->items, path, depth); },
                          [&](const Tuple* v) { return visit_items(v->items, path, depth); },
                          [&](const Set* v) { return visit_items(v->items, path, depth); },
                          [&](const Dict* v) { return visit_dict(*v, path, depth); },
                          [&](const Storage* v) -> std::optional<MetadataValue> {
                            const int64_t count = v->view ? v->view->count : v->count;
                            add(path,
                                heap_.make(TensorRecord{.type = v->type, .storage = v, .sizes = {count}, .strides = {1}, .at = v->at}));
                            return {};
                          },
                          [&](const TensorRecord* v) -> std::optional<MetadataValue> {
                            add(path, v);
                            return {};
                          },
                      },
                      value);
  }

  std::optional<MetadataValue> visit_items(std::span<const Value> items, std::string& path, int depth) {
    std::vector<MetadataValue> rest;
    bool has_plain = items.empty();
    for (size_t i = 0; i < items.size(); ++i) {
      std::optional<MetadataValue> value = visit_entry(fmt::format("{}", i), items[i], path, depth);
      has_plain |= value.has_value();
      rest.push_back(value ? std::move(*value) : MetadataValue{});
    }
    if (!has_plain) return {};
    return MetadataValue{std::move(rest)};
  }

  std::optional<MetadataValue> visit_dict(const Dict& dict, std::string& path, int depth) {
    Metadata rest;
    for (const auto& [key, value] : dict.entries()) {
      std::string name = key_text(key, path, depth);
      if (std::optional<MetadataValue> plain = visit_entry(name, value, path, depth)) rest.emplace_back(std::move(name), std::move(*plain));
    }
    if (rest.empty() && !dict.entries().empty()) return {};
    return MetadataValue{std::move(rest)};
  }

  std::optional<MetadataValue> visit_entry(std::string_view name, const Value& value, std::string& path, int depth) {
    const size_t before = path.size();
    spend(name.size() + 1, path);
    if (depth > 0) path += '.';
    path += name;
    std::optional<MetadataValue> out = visit(value, path, depth + 1);
    path.resize(before);
    return out;
  }

  void add(const std::string& path, const TensorRecord* tensor) {
    spend(path.size() + sizeof(formats::TensorInfo), path);
    out_.tensors.emplace_back(path.empty() ? "tensor" : path, tensor);
  }

  std::string text(std::string_view text, std::string_view path) {
    spend(text.size(), path);
    return std::string(text);
  }
  /// Each byte as the letter of this number.
  std::string latin1(std::string_view bytes, std::string_view path) {
    spend(2 * bytes.size(), path);
    std::string out;
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80) out += static_cast<char>(0xC0 | byte >> 6);
      out += static_cast<char>(byte >= 0x80 ? 0x80 | (byte & 0x3F) : byte);
    }
    return out;
  }
  MetadataValue integer(const std::string& digits, std::string_view path) {
    uint64_t unsigned_value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), unsigned_value);
    if (error == std::errc{} && end == digits.data() + digits.size()) return {unsigned_value};
    return {text(digits, path)};
  }

  /// As Python prints it, but for quotes around texts.
  std::string key_text(const Value& key, std::string_view path, int depth) {
    spend(value_cost, path);
    if (depth > most_deep) fail(path, fmt::format("a key that is more than {} deep", most_deep));
    return std::visit(Cases{
                          [&](std::monostate) { return std::string("None"); },
                          [&](bool v) { return std::string(v ? "True" : "False"); },
                          [&](int64_t v) { return fmt::format("{}", v); },
                          [&](double v) { return fmt::format("{}", v); },
                          [&](const Text* v) { return text(v->text, path); },
                          [&](const LongInteger* v) { return text(v->digits, path); },
                          [&](const Bytes* v) { return latin1(v->bytes, path); },
                          [&](const Global* v) { return text(v->name, path); },
                          [&](const Tuple* v) {
                            std::string out = "(";
                            for (const Value& item : v->items) out += (out.size() > 1 ? ", " : "") + key_text(item, path, depth + 1);
                            return out + ")";
                          },
                          [&](const auto*) -> std::string { fail(path, fmt::format("a key is {}", kind_of(key))); },
                      },
                      key);
  }

  uint64_t budget_;
  Heap& heap_;
  const std::string_view file_;
  Flattened out_;
};

}  // namespace

Flattened flatten(const Value& root, uint64_t pickle_bytes, Heap& heap, std::string_view file) {
  constexpr uint64_t factor = 64, free = uint64_t{1} << 24;
  const uint64_t budget = pickle_bytes > UINT64_MAX / factor - free ? UINT64_MAX : factor * pickle_bytes + free;
  return Flattener(budget, heap, file).take(root);
}

}  // namespace tinygrad::frontend::torch
