#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tinygrad/errors.h>
#include <tinygrad/onnx.h>

#include "run/program.h"

namespace tinygrad::apps {

namespace {

Port port_of(const onnx::ValueInfo& info) {
  Port out{.name = info.name, .type = info.type, .has_shape = info.has_shape, .index_bound = info.index_bound};
  out.is_optional = info.type.starts_with("optional");
  for (const onnx::Dimension& d : info.shape) out.shape.push_back({d.size, d.name});
  const DType dtype = onnx::dtype_of(info.element_type);
  const bool is_tensor = info.type.starts_with(onnx::name(info.element_type)) && info.element_type != onnx::ElementType::undefined;
  if (is_tensor && dtype != DType::void_ && onnx::element_type_of(dtype) == info.element_type) out.dtype = dtype;
  return out;
}

/// Sequences by places, maps by their keys and values.
void add(std::vector<Result>& out, const std::string& name, const onnx::Value& v) {
  using Kind = onnx::Value::Kind;
  switch (v.kind()) {
    case Kind::tensor: out.push_back({name, std::string(onnx::name(v.element_type())), v.shape(), v.tensor(), {}, false}); break;
    case Kind::strings: out.push_back({name, "string", v.shape(), {}, v.strings().values, false}); break;
    case Kind::sequence:
      for (size_t i = 0; i < v.sequence().size(); ++i) add(out, fmt::format("{}.{}", name, i), v.sequence()[i]);
      break;
    case Kind::map: {
      const onnx::Map& map = v.map();
      if (map.texts.empty())
        add(out, name + ".keys", Tensor(map.integers, {int64_t(map.integers.size())}, {.dtype = DType::int64}));
      else
        add(out, name + ".keys", onnx::Strings{{int64_t(map.texts.size())}, map.texts});
      add(out, name + ".values", map.values);
      break;
    }
    case Kind::absent: break;
  }
}

class OnnxProgram final : public Program {
 public:
  explicit OnnxProgram(const std::string& path) : model_(onnx::load(path)) {
    for (const onnx::ValueInfo& i : model_.inputs()) inputs_.push_back(port_of(i));
    for (const onnx::ValueInfo& o : model_.outputs()) outputs_.push_back(port_of(o));
  }
  std::string_view format() const override { return "onnx"; }
  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  std::vector<Result> run(const std::map<std::string, Tensor>& inputs) override {
    const onnx::Values values = model_.run(onnx::Values(inputs.begin(), inputs.end()));
    std::vector<Result> out;
    for (const Port& o : outputs_) {
      add(out, o.name, values.at(o.name));
      if (!out.empty()) out.back().has_fixed_row = has_fixed_row(o.shape);
    }
    return out;
  }

 private:
  const onnx::Model model_;
  std::vector<Port> inputs_, outputs_;
};

std::string lines_of(const std::string& path, const std::vector<onnx::UnsupportedOperator>& operators) {
  std::string out = fmt::format("{}: {} operator{} not supported", path, operators.size(), operators.size() == 1 ? " is" : "s are");
  constexpr int64_t most_named = 4;
  for (const onnx::UnsupportedOperator& o : operators) {
    const int64_t count = int64_t(o.nodes.size()), named = std::min(count, most_named);
    out += fmt::format("\n  {} ({} {}), {} node{}: {}{}", o.name, o.domain, o.version, count, count == 1 ? "" : "s",
                       fmt::join(o.nodes.begin(), o.nodes.begin() + named, ", "), count > named ? ", ..." : "");
  }
  return out;
}

}  // namespace

std::unique_ptr<Program> open_onnx(const std::string& path) {
  try {
    return std::make_unique<OnnxProgram>(path);
  } catch (const onnx::UnsupportedError& e) {
    throw Error(lines_of(path, e.operators()));
  }
}

}  // namespace tinygrad::apps
