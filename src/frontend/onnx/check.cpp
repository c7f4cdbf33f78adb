// What a model uses and the library lacks, names that nothing gives, functions without end, and what inputs select.
#include "frontend/onnx/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_set>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

class Checker {
 public:
  Checker(Program& program, bool reads_tensors) : program_(program), reads_tensors_(reads_tensors) {}

  Findings check() {
    for (const auto& [domain, version] : program_.model.opsets)
      if (const int64_t newest = newest_version(domain); newest != 0 && version > newest)
        unsupported_[{domain, "any operator", version}].push_back(
            fmt::format("the operator set, of which {} is the newest version known", newest));
    check_graph(program_.model.graph, program_.model.opsets, nullptr);
    for (auto& [key, nodes] : unsupported_) findings_.unsupported.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), nodes});
    return std::move(findings_);
  }

 private:
  /// The names that are known in a graph, and around it.
  struct Names {
    const Names* outer = nullptr;
    std::unordered_set<std::string_view> own = {};

    bool contains(std::string_view name) const {
      for (const Names* n = this; n; n = n->outer)
        if (n->own.contains(name)) return true;
      return false;
    }
  };
  static constexpr int most_depth = 64;

  [[noreturn]] void fail(const std::string& what) const { throw FormatError(fmt::format("{}: {}", program_.files.source.name, what)); }

  void check_graph(const proto::Graph& g, const proto::Opsets& opsets, const Names* outer) {
    Names names{.outer = outer};
    for (const auto& i : g.inputs)
      if (!names.own.insert(i.name).second) fail(fmt::format("two inputs '{}' of the graph '{}'", i.name, g.name));
    for (const proto::TensorProto& t : g.initializers) names.own.insert(t.name);
    for (const proto::SparseTensorProto& t : g.sparse_initializers) names.own.insert(t.values.name);
    if (reads_tensors_) program_.initializers_of(g);
    check_nodes(g.nodes, opsets, names);
    for (const auto& o : g.outputs)
      if (!names.contains(o.name)) fail(fmt::format("nothing gives the output '{}' of the graph '{}'", o.name, g.name));
  }

  void check_nodes(const std::vector<proto::Node>& nodes, const proto::Opsets& opsets, Names& names) {
    if (++depth_ > most_depth) fail(fmt::format("graphs and functions are nested deeper than {}", most_depth));
    for (const proto::Node& n : nodes) {
      for (const std::string& i : n.inputs)
        if (!i.empty() && !names.contains(i)) fail(fmt::format("{} uses '{}', which nothing before it gives", n.to_string(), i));
      check_node(n, opsets, names);
      for (const std::string& o : n.outputs)
        if (!o.empty() && !names.own.insert(o).second) fail(fmt::format("{} gives '{}', which there is already", n.to_string(), o));
    }
    --depth_;
  }

  void check_node(const proto::Node& n, const proto::Opsets& opsets, const Names& names) {
    for (const proto::Attribute& a : n.attributes) {
      for (const auto& g : a.graphs) check_graph(*g, opsets, &names);
      if (!reads_tensors_) continue;
      for (const proto::TensorProto& t : a.tensors) program_.constant(t);
      for (const proto::SparseTensorProto& t : a.sparse_tensors) read_value(program_.files, t);
    }
    const std::string key = function_key(n.domain, n.op_type, n.overload);
    const auto f = program_.functions.find(key);
    if (f != program_.functions.end()) return check_function(key, *f->second);
    ++findings_.operators[n.domain == onnx_domain ? n.op_type : n.domain + "." + n.op_type];
    const auto opset = opsets.find(n.domain);
    const int64_t version = opset == opsets.end() ? newest_version(n.domain) : opset->second;
    if (!find_operator(n.domain, n.op_type, version))
      unsupported_[{n.domain, n.op_type, version}].push_back(n.name.empty() && !n.outputs.empty() ? n.outputs.front() : n.name);
  }

  void check_function(const std::string& key, const proto::Function& f) {
    if (!within_.insert(key).second) fail(fmt::format("the function {} calls itself", f.name));
    if (checked_.insert(key).second) {
      Names names;
      for (const std::string& i : f.inputs) names.own.insert(i);
      check_nodes(f.nodes, f.opsets, names);
      for (const std::string& o : f.outputs)
        if (!names.contains(o)) fail(fmt::format("nothing gives the output '{}' of the function {}", o, f.name));
    }
    within_.erase(key);
  }

  Program& program_;
  const bool reads_tensors_;
  std::map<std::tuple<std::string, std::string, int64_t>, std::vector<std::string>> unsupported_;
  Findings findings_;
  std::set<std::string> within_, checked_;
  int depth_ = 0;
};

}  // namespace

Findings check(Program& program, bool reads_tensors) { return Checker(program, reads_tensors).check(); }

std::map<std::string, int64_t> index_bounds(const proto::Graph& graph) {
  std::map<std::string, std::string> moved;  // of names whose elements are those of an input: the input
  std::map<std::string_view, const Sizes*> sizes;
  for (const proto::NamedType& i : graph.inputs) moved[i.name] = i.name;
  for (const proto::TensorProto& t : graph.initializers) {
    moved.erase(t.name);
    sizes[t.name] = &t.dims;
  }
  constexpr std::string_view movements[] = {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand"};
  std::map<std::string, int64_t> out;
  for (const proto::Node& n : graph.nodes) {
    if (std::ranges::find(movements, n.op_type) != std::end(movements) && !n.inputs.empty() && n.outputs.size() == 1)
      if (const auto from = moved.find(n.inputs[0]); from != moved.end()) moved[n.outputs[0]] = std::string(from->second);
    constexpr std::string_view same_sizes[] = {"DequantizeLinear", "Cast", "Identity"};
    if (std::ranges::find(same_sizes, n.op_type) != std::end(same_sizes) && !n.inputs.empty() && n.outputs.size() == 1)
      if (const auto of = sizes.find(n.inputs[0]); of != sizes.end()) sizes[n.outputs[0]] = of->second;
    if (const proto::Attribute* value = n.attribute("value");
        n.op_type == "Constant" && value && value->tensors.size() == 1 && !n.outputs.empty())
      sizes[n.outputs[0]] = &value->tensors[0].dims;
    if (n.op_type != "Gather" || n.inputs.size() != 2) continue;
    const auto from = moved.find(n.inputs[1]);
    const auto data = sizes.find(n.inputs[0]);
    if (from == moved.end() || data == sizes.end()) continue;
    const proto::Attribute* axis = n.attribute("axis");
    const int64_t rank = int64_t(data->second->size()), at = axis ? axis->integer + (axis->integer < 0 ? rank : 0) : 0;
    if (at < 0 || at >= rank) continue;
    const auto [bound, is_new] = out.emplace(from->second, (*data->second)[size_t(at)]);
    if (!is_new) bound->second = std::min(bound->second, (*data->second)[size_t(at)]);
  }
  return out;
}

}  // namespace tinygrad::onnx
