#include "inspect/graph.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <tinygrad/onnx.h>
#include <tinygrad/torch_export.h>

namespace tinygrad::apps {

namespace {

Graph graph_of_onnx(const std::string& path) {
  const onnx::Description d = onnx::describe(path);
  Graph out{.operators = d.operators};
  for (const onnx::ValueInfo& v : d.inputs) out.inputs.push_back({v.name, v.type});
  for (const onnx::ValueInfo& v : d.outputs) out.outputs.push_back({v.name, v.type});
  for (const onnx::UnsupportedOperator& o : d.unsupported) out.unsupported.push_back({o.name, o.domain, o.version, o.nodes});
  return out;
}

std::vector<Graph::Value> values_of(const std::vector<torch_export::ValueInfo>& all, const std::string& prefix) {
  std::vector<Graph::Value> out;
  for (const torch_export::ValueInfo& v : all) out.push_back({prefix + v.name, v.type});
  return out;
}

Graph graph_of_exported(const std::string& path) {
  const auto programs = torch_export::describe(path);
  Graph out;
  for (const auto& [model, d] : programs) {
    const std::string prefix = programs.size() == 1 ? "" : model + ".";
    for (const Graph::Value& v : values_of(d.inputs, prefix)) out.inputs.push_back(v);
    for (const Graph::Value& v : values_of(d.outputs, prefix)) out.outputs.push_back(v);
    for (const auto& [name, count] : d.operators) out.operators[name] += count;
    for (const std::string& name : d.unsupported) out.unsupported.push_back({.name = name});
  }
  return out;
}

}  // namespace

std::string Graph::Missing::full_name() const { return domain.empty() || domain == "ai.onnx" ? name : domain + "." + name; }
std::string Graph::Missing::described() const {
  return domain.empty() ? name : fmt::format("{} {}, {}", domain, version, nodes.empty() ? name : nodes.front());
}

std::optional<Graph> graph_of(const std::string& path, std::string_view format) {
  if (format == "onnx") return graph_of_onnx(path);
  if (format == "torch.export") return graph_of_exported(path);
  return {};
}

}  // namespace tinygrad::apps
