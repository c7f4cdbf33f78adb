#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tinygrad/device.h>
#include <tinygrad/errors.h>
#include <tinygrad/torch_export.h>

#include "run/program.h"

namespace tinygrad::apps {

namespace {

using torch_export::ValueInfo;

/// "[0]" and "" are places among results: names of arrays in a file are made of them.
std::string name_of(std::string path, std::string_view what) {
  std::erase(path, ']');
  std::ranges::replace(path, '[', '.');
  return path.empty() || path.front() == '.' ? std::string(what) + path : path;
}

Port port_of(const torch_export::Program& program, const ValueInfo& info, std::string_view what) {
  Port out{.name = name_of(info.name, what), .type = info.type, .dtype = info.dtype, .has_shape = true, .index_bound = info.index_bound};
  for (const torch_export::Size& s : info.shape) {
    out.shape.push_back({s.number, s.symbol, s.factor, s.offset});
    if (const auto range = program.ranges().find(s.symbol); range != program.ranges().end())
      out.shape.back().least = std::max<int64_t>(range->second.first, 1);
  }
  if (info.type == "int") out.dtype = DType::int64;
  if (info.type == "float") out.dtype = DType::float64;
  if (info.type == "bool") out.dtype = DType::bool_;
  return out;
}

class ExportedProgram final : public Program {
 public:
  explicit ExportedProgram(const std::string& path) : program_(torch_export::load(path, {.device = default_device()})) {
    if (!program_.unsupported().empty())
      throw Error(fmt::format("{}: not supported:\n  {}", path, fmt::join(program_.unsupported(), "\n  ")));
    for (const ValueInfo& i : program_.inputs())
      if (!i.is_constant) {
        inputs_.push_back(port_of(program_, i, "input"));
        is_number_.push_back(!i.dtype);
      }
    for (const ValueInfo& o : program_.outputs()) outputs_.push_back(port_of(program_, o, "output"));
  }
  std::string_view format() const override { return "torch.export"; }
  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  std::vector<Result> run(const std::map<std::string, Tensor>& inputs) override {
    std::vector<torch_export::Input> given;
    for (size_t i = 0; i < inputs_.size(); ++i) given.push_back(input_of(inputs.at(inputs_[i].name), is_number_[i]));
    const std::vector<Tensor> results = program_.run(given);
    std::vector<Result> out;
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor& t = results[i];
      if (!t.defined()) continue;  // None
      out.push_back({.name = outputs_[i].name,
                     .type = text_of(t.dtype()),
                     .shape = t.shape(),
                     .tensor = t,
                     .has_fixed_row = has_fixed_row(outputs_[i].shape)});
    }
    return out;
  }

 private:
  static torch_export::Input input_of(const Tensor& t, bool is_number) {
    if (!is_number) return t;
    if (t.dtype() == DType::bool_) return t.item<bool>();
    if (t.dtype() == DType::float64) return t.item<double>();
    return t.item<int64_t>();
  }

  const torch_export::Program program_;
  std::vector<Port> inputs_, outputs_;
  std::vector<bool> is_number_;
};

}  // namespace

std::unique_ptr<Program> open_exported(const std::string& path) { return std::make_unique<ExportedProgram>(path); }

}  // namespace tinygrad::apps
