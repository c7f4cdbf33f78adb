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

ValueInfo info_of(const ExportedProgram& program, const Argument& a, const std::string& path) {
  ValueInfo out{.name = path};
  if (!a.name()) {
    out.type = a.constant() ? text_of(*a.constant()) : "a list";
    out.is_constant = true;
    return out;
  }
  const auto meta = program.graph.tensors.find(a.name()->text);
  if (meta == program.graph.tensors.end()) {
    out.type = "number";
    return out;
  }
  out.type = meta->second.type;
  out.dtype = meta->second.dtype;
  for (const Expression& e : meta->second.sizes) out.shape.push_back(e.text());
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
  void list(Listing& out) const {
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
  static formats::MetadataValue values(const std::vector<ValueInfo>& all) {
    std::vector<std::string> out;
    for (const ValueInfo& v : all) {
      std::string shape;
      for (const std::string& s : v.shape) shape += (shape.empty() ? "" : ", ") + s;
      out.push_back(fmt::format("{}: {}{}", v.name, v.type, v.dtype ? fmt::format(" ({})", shape) : ""));
    }
    return texts(out);
  }
  void add_model(const std::string& model) {
    const std::string prefix = archive_.models().size() == 1 ? "" : model + ".";
    const ExportedProgram program = archive_.program(model);
    const Listing listing = list_program(program);
    metadata_.push_back({prefix + "torch", {program.torch_version}});
    metadata_.push_back({prefix + "schema", {program.schema_version}});
    metadata_.push_back({prefix + "inputs", values(listing.inputs)});
    metadata_.push_back({prefix + "outputs", values(listing.outputs)});
    formats::Metadata operators;
    for (const auto& [name, count] : listing.operators) operators.push_back({name, {count}});
    metadata_.push_back({prefix + "operators", {operators}});
    if (!listing.unsupported.empty()) metadata_.push_back({prefix + "unsupported", texts(listing.unsupported)});
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

Listing list_program(const ExportedProgram& program) {
  Listing out;
  size_t next = 0;
  for (const InputSpec& spec : program.inputs)
    if (spec.kind == InputSpec::Kind::user || spec.kind == InputSpec::Kind::constant)
      out.inputs.push_back(info_of(program, spec.argument, program.input_paths[next++]));
  next = 0;
  for (const OutputSpec& spec : program.outputs)
    if (spec.kind == OutputSpec::Kind::user || spec.kind == OutputSpec::Kind::loss)
      out.outputs.push_back(info_of(program, spec.argument, program.output_paths[next++]));
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
