#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>

#include <tinygrad/errors.h>
#include <tinygrad/torch_export.h>

#include "frontend/torch_export/archive.h"
#include "frontend/torch_export/listing.h"
#include "frontend/torch_export/walk.h"

namespace tinygrad::torch_export {

struct Program::Impl {
  std::string file;
  ExportedProgram program;
  aten::CallOptions options;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<std::string> unsupported;
  std::vector<std::pair<std::string, int64_t>> operators;
  nn::state::StateDict state;
};

namespace {

std::string kind_of(const Input& input) {
  constexpr std::string_view names[] = {"a tensor", "an integer", "a float", "a bool", "a text"};
  return std::string(names[input.index()]);
}
aten::Value to_value(const Input& input) {
  return std::visit([](const auto& v) { return aten::Value(v); }, input);
}

/// Takes the inputs of a call, and the values of symbols from their sizes.
class Inputs {
 public:
  Inputs(const Program::Impl& impl, std::span<const Input> given) : impl_(impl), given_(given) {}

  /// A slot for each input of the graph.
  std::vector<Slot> take() {
    std::vector<Slot> out;
    size_t next = 0, listed = 0;
    const auto wanted = size_t(std::ranges::count(impl_.inputs, false, &ValueInfo::is_constant));
    if (given_.size() != wanted) throw ValueError(fmt::format("{}: {} inputs, expects {}", impl_.file, given_.size(), wanted));
    for (const InputSpec& spec : impl_.program.inputs) {
      using Kind = InputSpec::Kind;
      if (spec.kind == Kind::parameter || spec.kind == Kind::buffer || spec.kind == Kind::constant_tensor) {
        out.emplace_back(View(impl_.state.at(spec.target)));
        continue;
      }
      const ValueInfo& info = impl_.inputs[listed++];
      if (info.is_constant) {
        out.emplace_back(spec.argument.constant() ? *spec.argument.constant() : aten::Value());
        continue;
      }
      out.push_back(slot_of(spec, info, given_[next++]));
    }
    check_sizes();
    return out;
  }

 private:
  Slot slot_of(const InputSpec& spec, const ValueInfo& info, const Input& input) {
    const Tensor* t = std::get_if<Tensor>(&input);
    const auto meta = impl_.program.graph.tensors.find(spec.argument.name()->text);
    if ((meta != impl_.program.graph.tensors.end()) != (t != nullptr))
      throw ValueError(fmt::format("{}: input '{}' is {}, expects {}", impl_.file, info.name, kind_of(input), info.type));
    if (!t) return to_value(input);
    if (info.dtype && t->dtype() != *info.dtype)
      throw DTypeError(fmt::format("{}: input '{}' is {}, expects {}", impl_.file, info.name, repr(t->dtype()), repr(*info.dtype)));
    const Sizes shape = t->shape();
    const auto& sizes = meta->second.sizes;
    if (shape.size() != sizes.size())
      throw ShapeError(fmt::format("{}: input '{}' has the shape ({}), expects ({})", impl_.file, info.name, fmt::join(shape, ", "),
                                   fmt::join(info.shape, ", ")));
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (const std::string* symbol = sizes[i].symbol()) symbols_.emplace(*symbol, shape[i]);
      checks_.push_back({&info, i, &sizes[i], shape[i]});
    }
    if (!impl_.options.device.empty() && t->device() != impl_.options.device) return View(t->to(impl_.options.device));
    return View(*t);
  }
  void check_sizes() const {
    for (const Check& c : checks_) {
      const std::optional<int64_t> expected = c.size->value(symbols_);
      if (!expected)
        throw ValueError(fmt::format("{}: input '{}' has a size {} that is not supported", impl_.file, c.info->name, c.size->text()));
      if (*expected != c.got)
        throw ShapeError(fmt::format("{}: input '{}' has {} elements along axis {}, expects {}{}", impl_.file, c.info->name, c.got, c.axis,
                                     c.size->text(), c.size->is_number() ? "" : fmt::format(" = {}", *expected)));
    }
    for (const auto& [name, value] : symbols_) {
      const auto range = impl_.program.ranges.find(name);
      if (range == impl_.program.ranges.end()) continue;
      const auto& [min, max] = range->second;
      if ((min && value < *min) || (max && value > *max))
        throw ValueError(fmt::format("{}: the size {} is {}, and the program was exported for {} to {}", impl_.file, name, value,
                                     min ? fmt::format("{}", *min) : "any", max ? fmt::format("{}", *max) : "any"));
    }
  }

  struct Check {
    const ValueInfo* info;
    size_t axis;
    const Expression* size;
    int64_t got;
  };
  const Program::Impl& impl_;
  const std::span<const Input> given_;
  Symbols symbols_;
  std::vector<Check> checks_;
};

Tensor result_of(const aten::Value& v, const std::string& device) {
  if (v.is_none()) return {};
  if (const Tensor* t = v.get_if<Tensor>()) return *t;
  if (v.get_if<double>()) return Tensor::full({}, v.number(), {.dtype = DType::float64, .device = device});
  if (v.get_if<bool>()) return Tensor::full({}, v.boolean(), {.dtype = DType::bool_, .device = device});
  if (v.is_number()) return Tensor::full({}, v.integer(), {.dtype = DType::int64, .device = device});
  throw ValueError(fmt::format("a result that is {} is no tensor", v.kind()));
}

std::vector<Tensor> call(const Program::Impl& impl, std::span<const Input> given) {
  if (!impl.unsupported.empty()) throw ValueError(fmt::format("{}: not supported: {}", impl.file, fmt::join(impl.unsupported, ", ")));
  Walk walk(impl.program.graph, impl.options);
  const std::vector<Slot> slots = Inputs(impl, given).take();
  for (size_t i = 0; i < slots.size(); ++i) walk.set(impl.program.graph.inputs[i], slots[i]);
  walk.run();
  // What is written at the end: memory of inputs, by in-place operators or as outputs of the graph.
  std::vector<std::pair<Tensor, Tensor>> writes;
  std::map<const Memory*, Tensor> written;
  size_t next = 0;
  std::vector<Tensor> passed;  // the tensor that each input of the graph came as
  for (size_t i = 0; i < slots.size(); ++i) {
    const InputSpec& spec = impl.program.inputs[i];
    const bool is_state = impl.state.contains(spec.target) && spec.kind != InputSpec::Kind::user && spec.kind != InputSpec::Kind::constant;
    Tensor own;
    if (is_state) own = impl.state.at(spec.target);
    if (spec.kind == InputSpec::Kind::user && spec.argument.name()) {
      if (const Tensor* t = std::get_if<Tensor>(&given[next])) own = *t;
      ++next;
    }
    passed.push_back(own);
    if (const View* view = std::get_if<View>(&slots[i]); view && view->memory()->version > 0 && own.defined()) {
      writes.emplace_back(own, view->memory()->value);
      written.emplace(view->memory().get(), own);
    }
  }
  std::vector<Tensor> out;
  std::vector<const View*> views;
  std::vector<Slot> results;
  for (size_t i = 0; i < impl.program.outputs.size(); ++i) {
    const OutputSpec& spec = impl.program.outputs[i];
    const aten::Value value = walk.value(spec.argument);
    using Kind = OutputSpec::Kind;
    if (spec.kind == Kind::user || spec.kind == Kind::loss) {
      out.push_back(result_of(value, impl.options.device));
      results.push_back(spec.argument.name() ? walk.slot(spec.argument) : Slot(value));
      continue;
    }
    const auto place = std::ranges::find_if(impl.program.inputs, [&](const InputSpec& in) {
      return spec.kind == Kind::input_mutation ? in.argument.name() && in.argument.name()->text == spec.target
                                               : in.target == spec.target && in.kind != InputSpec::Kind::user;
    });
    if (place == impl.program.inputs.end() || !passed[size_t(place - impl.program.inputs.begin())].defined())
      throw FormatError(fmt::format("{}: the program writes into '{}', which is no input of it", impl.file, spec.target));
    writes.emplace_back(passed[size_t(place - impl.program.inputs.begin())], value.tensor());
  }
  if (writes.empty()) return out;
  // Results that were there before a write must not see it; those that are views of what is written do.
  for (size_t i = 0; i < out.size(); ++i) {
    const View* view = std::get_if<View>(&results[i]);
    if (view && out[i].defined() && !written.contains(view->memory().get())) out[i] = out[i].contiguous();
  }
  for (auto& [to, from] : writes) to.assign(from.to(to.device()).cast(to.dtype()).contiguous());
  for (size_t i = 0; i < out.size(); ++i)
    if (const View* view = std::get_if<View>(&results[i]))
      if (const auto found = written.find(view->memory().get()); found != written.end())
        out[i] = view->replayed_on(found->second, impl.options);
  return out;
}

Program load_from(frontend::FileBytes bytes, const LoadOptions& options, const std::string& model) {
  const Archive archive(std::move(bytes));
  if (archive.models().empty())
    throw FormatError(fmt::format("{}: no program: {}", archive.name(),
                                  archive.compiled().empty()
                                      ? "the archive has no models/*.json"
                                      : "it holds code that AOTInductor compiled, which is not run; use torch.export.save"));
  const std::string name = model.empty() ? archive.models().size() == 1 ? archive.models()[0] : "model" : model;
  if (std::ranges::find(archive.models(), name) == archive.models().end())
    throw FormatError(fmt::format("{}: no program is named '{}'; there are {}", archive.name(), name, fmt::join(archive.models(), ", ")));
  auto impl = std::make_shared<Program::Impl>();
  impl->file = archive.name();
  impl->program = archive.program(name);
  impl->options.device = options.device;
  const Listing listing = list_program(impl->program);
  impl->inputs = listing.inputs;
  impl->outputs = listing.outputs;
  impl->unsupported = listing.unsupported;
  impl->operators = listing.operators;
  for (const Payload& payload : archive.payloads(name)) {
    const Tensor t = archive.tensor(payload);
    impl->state.emplace(payload.name, options.device.empty() || t.device() == options.device ? t : t.to(options.device));
  }
  for (const InputSpec& spec : impl->program.inputs) {
    if (spec.kind == InputSpec::Kind::user || spec.kind == InputSpec::Kind::constant) continue;
    const auto found = impl->state.find(spec.target);
    if (found == impl->state.end()) throw FormatError(fmt::format("{}: the archive has no tensor '{}'", archive.name(), spec.target));
    check_tensor(impl->program, spec, found->second, archive.name());
  }
  return Program(impl);
}

}  // namespace

const std::vector<ValueInfo>& Program::inputs() const { return impl_->inputs; }
const std::vector<ValueInfo>& Program::outputs() const { return impl_->outputs; }
const std::vector<std::string>& Program::unsupported() const { return impl_->unsupported; }
const std::vector<std::pair<std::string, int64_t>>& Program::operators() const { return impl_->operators; }
const nn::state::StateDict& Program::state() const { return impl_->state; }

std::vector<Tensor> Program::operator()(std::span<const Input> inputs) const { return call(*impl_, inputs); }
std::vector<Tensor> Program::operator()(std::span<const Tensor> inputs) const {
  const std::vector<Input> all(inputs.begin(), inputs.end());
  return call(*impl_, all);
}

Program load(const std::string& path, const LoadOptions& options, const std::string& model) {
  return load_from(frontend::FileBytes::map(path), options, model);
}
Program load(const Tensor& bytes, const LoadOptions& options, const std::string& model) {
  return load_from(frontend::FileBytes::of(bytes), options, model);
}

}  // namespace tinygrad::torch_export
