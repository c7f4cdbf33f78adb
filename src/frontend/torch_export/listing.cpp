#include "frontend/torch_export/listing.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "frontend/torch_export/archive.h"
#include "frontend/torch_export/walk.h"

namespace tinygrad::torch_export {

namespace {

std::string text_of(const aten::Value& v) {
  if (v.is_none()) return "None";
  if (const bool* b = v.get_if<bool>()) return fmt::format("bool = {}", *b);
  if (const int64_t* i = v.get_if<int64_t>()) return fmt::format("int = {}", *i);
  if (const double* d = v.get_if<double>()) return fmt::format("float = {}", *d);
  if (const std::string* s = v.get_if<std::string>()) return fmt::format("text = {}", *s);
  return std::string(v.kind());
}

Size size_of(const Expression& e) {
  Size out{.text = e.text(), .number = e.is_number() ? e.number() : -1};
  if (const std::optional<Linear> linear = e.linear()) {
    out.symbol = linear->symbol;
    out.factor = linear->factor;
    out.offset = linear->offset;
  }
  return out;
}

ValueInfo info_of(const ExportedProgram& program, const Argument& a, const std::string& path) {
  ValueInfo out{.name = path};
  if (!a.name()) {
    out.type = a.constant() ? text_of(*a.constant()) : "a list";
    out.is_constant = true;
    return out;
  }
  const auto meta = program.graph.tensors.find(a.name()->text);
  if (meta == program.graph.tensors.end()) {
    const auto number = program.graph.numbers.find(a.name()->text);
    const bool is_int = number == program.graph.numbers.end() || number->second == DType::int64;
    out.type = is_int ? "int" : number->second == DType::bool_ ? "bool" : "float";
    return out;
  }
  out.dtype = meta->second.dtype;
  std::string sizes;
  for (const Expression& e : meta->second.sizes) {
    out.shape.push_back(size_of(e));
    sizes += (sizes.empty() ? "" : ", ") + out.shape.back().text;
  }
  out.type = fmt::format("{} ({})", meta->second.type, sizes);
  return out;
}

/// How many rows the tables have that tensors select of, by the tensors' names.
std::map<std::string_view, int64_t> index_bounds(const Graph& graph) {
  std::map<std::string_view, int64_t> out;
  for (const Node& node : graph.nodes) {
    if (node.target != "aten.embedding.default" || node.inputs.size() < 2) continue;
    const Name *table = node.inputs[0].second.name(), *indices = node.inputs[1].second.name();
    const auto meta = table ? graph.tensors.find(table->text) : graph.tensors.end();
    if (!indices || meta == graph.tensors.end() || meta->second.sizes.empty() || !meta->second.sizes[0].is_number()) continue;
    const int64_t rows = meta->second.sizes[0].number();
    const auto [known, is_new] = out.emplace(indices->text, rows);
    known->second = std::min(known->second, rows);
  }
  return out;
}

/// Counts operators, and what of them is not supported.
class Operators {
 public:
  void add(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      ++counts_[node.target];
      if (!is_supported(node)) note(node.target);
      for (const auto& [name, a] : node.inputs) look(node, a);
    }
    for (const auto& [name, meta] : graph.tensors)
      if (!meta.dtype || !meta.is_strided) note(fmt::format("tensors of {}", meta.is_strided ? meta.type : "a layout that is not strided"));
  }
  void list(Description& out) const {
    for (const auto& [name, count] : counts_) out.operators.emplace_back(name, count);
    out.unsupported = unsupported_;
  }

 private:
  void note(const std::string& what) {
    if (std::ranges::find(unsupported_, what) == unsupported_.end()) unsupported_.push_back(what);
  }
  void look(const Node& node, const Argument& a) {
    if (a.foreign()) note(fmt::format("{} with {}", node.target, a.foreign()->what));
    if (a.list())
      for (const Argument& item : *a.list()) look(node, item);
    if (a.graph()) add(**a.graph());
  }
  std::map<std::string, int64_t> counts_;
  std::vector<std::string> unsupported_;
};

/// Lists what is in the archive; a tensor is read when it is asked for.
class Pt2Reader final : public formats::Reader {
 public:
  explicit Pt2Reader(const frontend::FileBytes& file) : archive_(file) {
    for (const std::string& model : archive_.models()) add_model(model);
    if (!archive_.compiled().empty()) metadata_.push_back({"compiled (not run)", texts(archive_.compiled())});
  }
  std::string_view format() const override { return "torch.export"; }
  const formats::Metadata& metadata() const override { return metadata_; }
  const std::vector<formats::TensorInfo>& tensors() const override { return infos_; }
  Tensor tensor(size_t place) const override {
    tensors_at(place);
    return archive_.tensor(payloads_[place]);
  }

 private:
  static formats::MetadataValue texts(const std::vector<std::string>& all) {
    std::vector<formats::MetadataValue> out;
    for (const std::string& s : all) out.push_back({s});
    return {out};
  }
  void add_model(const std::string& model) {
    const std::string prefix = archive_.models().size() == 1 ? "" : model + ".";
    const ExportedProgram program = archive_.program(model);
    metadata_.push_back({prefix + "torch", {program.torch_version}});
    metadata_.push_back({prefix + "schema", {program.schema_version}});
    for (Payload& payload : archive_.payloads(model)) {
      infos_.push_back(archive_.describe(payload));
      infos_.back().name = prefix + payload.name;
      payloads_.push_back(std::move(payload));
    }
  }

  const Archive archive_;
  formats::Metadata metadata_;
  std::vector<formats::TensorInfo> infos_;
  std::vector<Payload> payloads_;
};

}  // namespace

Description list_program(const ExportedProgram& program) {
  Description out;
  size_t next = 0;
  const std::map<std::string_view, int64_t> bounds = index_bounds(program.graph);
  for (const InputSpec& spec : program.inputs)
    if (spec.kind == InputSpec::Kind::user || spec.kind == InputSpec::Kind::constant) {
      out.inputs.push_back(info_of(program, spec.argument, program.input_paths[next++]));
      const auto bound = spec.argument.name() ? bounds.find(spec.argument.name()->text) : bounds.end();
      if (bound != bounds.end()) out.inputs.back().index_bound = bound->second;
    }
  next = 0;
  for (const OutputSpec& spec : program.outputs)
    if (spec.kind == OutputSpec::Kind::user || spec.kind == OutputSpec::Kind::loss)
      out.outputs.push_back(info_of(program, spec.argument, program.output_paths[next++]));
  for (const auto& [name, range] : program.ranges) out.ranges[name] = {range.min.value_or(0), range.max.value_or(INT64_MAX)};
  Operators operators;
  operators.add(program.graph);
  operators.list(out);
  return out;
}

void check_tensor(const ExportedProgram& program, const InputSpec& spec, const Tensor& tensor, const std::string& file) {
  const auto meta = program.graph.tensors.find(spec.argument.name()->text);
  if (meta == program.graph.tensors.end()) return;
  bool same = meta->second.dtype == tensor.dtype() && int(meta->second.sizes.size()) == tensor.ndim();
  for (size_t i = 0; same && i < meta->second.sizes.size(); ++i)
    same = meta->second.sizes[i].is_number() && meta->second.sizes[i].number() == tensor.size(int(i));
  if (!same)
    throw FormatError(
        fmt::format("{}: '{}' is {}, which the graph's '{}' is not", file, spec.target, tensor.to_string(), spec.argument.name()->text));
}

std::unique_ptr<formats::Reader> open_pt2(const frontend::FileBytes& file) { return std::make_unique<Pt2Reader>(file); }

}  // namespace tinygrad::torch_export
