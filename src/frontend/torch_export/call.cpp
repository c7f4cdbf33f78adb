// Calls of a program: inputs are checked, its graph is made of tensors, and what it writes is written at the end.
#include "frontend/torch_export/call.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include <tinygrad/errors.h>

#include "frontend/torch_export/walk.h"
#include "tensor/memory.h"

namespace tinygrad::torch_export {

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
    const auto wanted = size_t(std::ranges::count(impl_.description.inputs, false, &ValueInfo::is_constant));
    if (given_.size() != wanted) throw ValueError(fmt::format("{}: {} inputs, expects {}", impl_.file, given_.size(), wanted));
    for (const InputSpec& spec : impl_.program.inputs) {
      if (spec.is_state()) {
        View view(impl_.state.at(spec.target));
        view.memory()->may_be_shared = impl_.shared.contains(spec.target);
        out.emplace_back(std::move(view));
        continue;
      }
      const ValueInfo& info = impl_.description.inputs[listed++];
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
      throw ShapeError(
          fmt::format("{}: input '{}' has the shape ({}), expects {}", impl_.file, info.name, fmt::join(shape, ", "), info.type));
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (const std::optional<Linear> e = sizes[i].linear()) {
        const std::optional<int64_t> number = e->number_for(shape[i]);
        if (!number)
          throw ShapeError(fmt::format("{}: input '{}' has {} elements along axis {}, which is {} for no {}", impl_.file, info.name,
                                       shape[i], i, sizes[i].text(), e->symbol));
        symbols_.emplace(e->symbol, *number);
      }
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
      const bool is_assumed = min == 2;  // PyTorch takes that for granted of any size that may differ, and does not check it
      if ((min && !is_assumed && value < *min) || (max && value > *max))
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

/// The tensor that each input of the graph came as, undefined for what is none.
std::vector<Tensor> tensors_of(const Program::Impl& impl, std::span<const Input> given) {
  std::vector<Tensor> out;
  size_t next = 0;
  for (const InputSpec& spec : impl.program.inputs) {
    Tensor& own = out.emplace_back();
    if (spec.is_state()) own = impl.state.at(spec.target);
    if (spec.kind != InputSpec::Kind::user || !spec.argument.name()) continue;
    if (const Tensor* t = std::get_if<Tensor>(&given[next])) own = *t;
    ++next;
  }
  return out;
}

/// The elements as they are now, whatever is written to what the tensor is a view of.
Tensor frozen(const Tensor& t) { return tensor::state_of_view(t.uop()) ? t.clone() : t; }

/// The place of the input that a mutation writes into.
size_t written_place(const Program::Impl& impl, const OutputSpec& spec) {
  const auto place = std::ranges::find_if(impl.program.inputs, [&](const InputSpec& in) {
    return spec.kind == OutputSpec::Kind::input_mutation ? in.argument.name() && in.argument.name()->text == spec.target
                                                         : in.is_state() && in.target == spec.target;
  });
  return size_t(place - impl.program.inputs.begin());
}

}  // namespace

std::vector<Tensor> call(const Program::Impl& impl, std::span<const Input> given) {
  if (!impl.description.unsupported.empty())
    throw ValueError(fmt::format("{}: not supported: {}", impl.file, fmt::join(impl.description.unsupported, ", ")));
  Walk walk(impl.program.graph, impl.options);
  const std::vector<Slot> slots = Inputs(impl, given).take();
  for (size_t i = 0; i < slots.size(); ++i) walk.set(impl.program.graph.inputs[i], slots[i]);
  walk.run();
  // What is written at the end: memory of inputs, by in-place operators or as outputs of the graph.
  std::vector<std::pair<Tensor, Tensor>> writes;
  std::map<const Memory*, Tensor> written;
  const std::vector<Tensor> passed = tensors_of(impl, given);
  for (size_t i = 0; i < slots.size(); ++i) {
    const View* view = std::get_if<View>(&slots[i]);
    if (!view || view->memory()->version == 0 || !passed[i].defined()) continue;
    writes.emplace_back(passed[i], view->memory()->value);
    written.emplace(view->memory().get(), passed[i]);
  }
  std::vector<Tensor> out;
  std::vector<Slot> results;
  for (const OutputSpec& spec : impl.program.outputs) {
    const aten::Value value = walk.value(spec.argument);
    using Kind = OutputSpec::Kind;
    if (spec.kind == Kind::user || spec.kind == Kind::loss) {
      out.push_back(result_of(value, impl.options.device));
      results.push_back(spec.argument.name() ? walk.slot(spec.argument) : Slot(value));
      continue;
    }
    const size_t place = written_place(impl, spec);
    if (place == passed.size() || !passed[place].defined())
      throw FormatError(fmt::format("{}: the program writes into '{}', which is no input of it", impl.file, spec.target));
    writes.emplace_back(passed[place], value.tensor());
  }
  if (writes.empty()) return out;
  // Neither a result nor another write sees what is written here, but for results that are views of it.
  for (size_t i = 0; i < out.size(); ++i) {
    const View* view = std::get_if<View>(&results[i]);
    if (view && out[i].defined() && !written.contains(view->memory().get())) out[i] = frozen(out[i]);
  }
  for (auto& [to, from] : writes) from = frozen(from.to(to.device()).cast(to.dtype()));
  for (auto& [to, from] : writes) to.assign(from);
  for (size_t i = 0; i < out.size(); ++i)
    if (const View* view = std::get_if<View>(&results[i]))
      if (const auto found = written.find(view->memory().get()); found != written.end())
        out[i] = view->replayed_on(found->second, impl.options);
  return out;
}

}  // namespace tinygrad::torch_export
