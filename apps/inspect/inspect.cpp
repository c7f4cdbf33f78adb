#include "inspect/inspect.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <tinygrad/formats.h>

#include "common/json_line.h"
#include "common/size_text.h"
#include "inspect/graph.h"

namespace tinygrad::apps {

namespace {

using Json = nlohmann::ordered_json;
using formats::MetadataValue;
using formats::TensorInfo;

Json json_of(const MetadataValue& value) { return Json::parse(formats::to_json(value)); }

/// On one line, so that no text of a file can move the cursor; long lists by their first elements.
std::string text_of(const Json& value) {
  constexpr size_t most_elements = 8, most_bytes = 96;
  std::string out;
  if (value.is_array() && value.size() > most_elements) {
    const Json first(value.begin(), value.begin() + most_elements);
    out = fmt::format("{} elements: {}", value.size(), first.dump(-1, ' ', true, Json::error_handler_t::replace));
  } else {
    out = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (value.is_string()) out = out.substr(1, out.size() - 2);
  }
  if (out.size() > most_bytes) out = out.substr(0, most_bytes) + fmt::format("... ({} bytes)", out.size());
  return out;
}

/// Sums that stop at the largest number: tensors without elements in the file may have any sizes.
int64_t add(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}
int64_t elements_of(const TensorInfo& tensor) {
  int64_t out = 1;
  for (const int64_t size : tensor.shape)
    if (__builtin_mul_overflow(out, size, &out)) return INT64_MAX;
  return out;
}

struct Row {
  std::string name, type, shape, bytes;
};

Row row_of(const TensorInfo& t) {
  const std::string type = text_of(Json(t.type));
  return {text_of(Json(t.name)), t.dtype ? type : type + " (not read)", fmt::format("({})", fmt::join(t.shape, ", ")), size_text(t.bytes)};
}

void print_table(const std::vector<TensorInfo>& tensors) {
  std::vector<Row> rows{{"name", "type", "shape", "bytes"}};
  for (const TensorInfo& t : tensors) rows.push_back(row_of(t));
  const auto width = [&](std::string Row::* column) {
    size_t most = 0;
    for (const Row& r : rows) most = std::max(most, (r.*column).size());
    return most;
  };
  const size_t name = width(&Row::name), type = width(&Row::type), shape = width(&Row::shape);
  for (const Row& r : rows) fmt::print("{:<{}}  {:<{}}  {:<{}}  {:>10}\n", r.name, name, r.type, type, r.shape, shape, r.bytes);
}

Json json_of(const std::vector<Graph::Value>& values) {
  Json out = Json::array();
  for (const Graph::Value& v : values) out.push_back({{"name", v.name}, {"type", v.type}});
  return out;
}

Json json_of(const Graph::Missing& missing) {
  Json out{{"name", missing.name}};
  if (!missing.domain.empty()) out.update({{"domain", missing.domain}, {"version", missing.version}, {"nodes", missing.nodes}});
  return out;
}

void print_graph(const Graph& graph) {
  const auto print_values = [](const char* title, const std::vector<Graph::Value>& values) {
    if (!values.empty()) fmt::print("\n{}\n", title);
    for (const Graph::Value& v : values) fmt::print("  {}  {}\n", text_of(Json(v.name)), text_of(Json(v.type)));
  };
  print_values("inputs", graph.inputs);
  print_values("outputs", graph.outputs);
  if (!graph.operators.empty()) fmt::print("\noperators\n");
  std::vector<std::pair<std::string, int64_t>> counts(graph.operators.begin(), graph.operators.end());
  std::ranges::stable_sort(counts, std::greater(), &std::pair<std::string, int64_t>::second);
  for (const auto& [name, count] : counts) {
    const bool is_missing = std::ranges::any_of(graph.unsupported, [&](const Graph::Missing& m) { return m.full_name() == name; });
    fmt::print("  {:>5} {}{}\n", count, text_of(Json(name)), is_missing ? "  (not supported)" : "");
  }
  for (const Graph::Missing& m : graph.unsupported)
    if (!graph.operators.contains(m.full_name())) fmt::print("  not supported: {}\n", text_of(Json(m.described())));
}

void print_text(const formats::Reader& file, const std::optional<Graph>& graph) {
  const std::vector<TensorInfo>& tensors = file.tensors();
  int64_t bytes = 0, elements = 0;
  std::map<std::string, size_t> types;
  for (const TensorInfo& t : tensors) {
    bytes = add(bytes, t.bytes);
    elements = add(elements, elements_of(t));
    ++types[row_of(t).type];
  }
  std::vector<std::string> counts;
  for (const auto& [type, count] : types) counts.push_back(fmt::format("{} {}", count, type));
  fmt::print("format    {}\n", file.format());
  fmt::print("tensors   {}{}{}\n", tensors.size(), counts.empty() ? "" : ": ", fmt::join(counts, ", "));
  fmt::print("elements  {}\n", elements);
  fmt::print("bytes     {}{}\n", bytes, bytes < 1024 ? "" : fmt::format(" ({})", size_text(bytes)));
  if (!file.metadata().empty()) fmt::print("\nmetadata\n");
  for (const auto& [name, value] : file.metadata()) fmt::print("  {} = {}\n", text_of(Json(name)), text_of(json_of(value)));
  if (graph) print_graph(*graph);
  if (tensors.empty()) return;
  fmt::print("\n");
  print_table(tensors);
}

}  // namespace

void inspect(const std::string& path, bool json) {
  const std::unique_ptr<formats::Reader> file = formats::open(path);
  const std::optional<Graph> graph = graph_of(path, file->format());
  if (!json) return print_text(*file, graph);
  Json tensors = Json::array();
  for (const TensorInfo& t : file->tensors()) {
    Json one{{"name", t.name}, {"type", t.type}, {"dtype", nullptr}, {"shape", t.shape}, {"bytes", t.bytes}};
    if (t.dtype) one["dtype"] = repr(*t.dtype).substr(std::string_view("dtypes.").size());
    if (t.offset >= 0) one["offset"] = t.offset;
    tensors.push_back(std::move(one));
  }
  Json line{{"format", file->format()}, {"tensors", std::move(tensors)}, {"metadata", json_of(MetadataValue{file->metadata()})}};
  if (graph) {
    Json unsupported = Json::array();
    for (const Graph::Missing& m : graph->unsupported) unsupported.push_back(json_of(m));
    line.update({{"inputs", json_of(graph->inputs)},
                 {"outputs", json_of(graph->outputs)},
                 {"operators", graph->operators},
                 {"unsupported", std::move(unsupported)}});
  }
  print_json(line);
}

}  // namespace tinygrad::apps
