#include "frontend/torch_export/walk.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include <tinygrad/errors.h>

#include "frontend/torch_export/sharing.h"

namespace tinygrad::torch_export {

using aten::Value;

namespace {

bool changes_shape_in_place(std::string_view name) {
  static const auto& names =
      *new std::set<std::string_view>{"squeeze_", "unsqueeze_", "transpose_", "t_",          "swapaxes_",      "swapdims_",
                                      "resize_",  "resize_as_", "set_",       "as_strided_", "requires_grad_", "rename_"};
  return names.contains(name);
}

constexpr std::string_view batch_norms[] = {"aten.batch_norm.default", "aten.native_batch_norm.default",
                                            "aten._native_batch_norm_legit.default"};
constexpr std::string_view higher_order[] = {"higher_order.cond", "higher_order.while_loop", "higher_order.map_impl",
                                             "higher_order.wrap_with_set_grad_enabled"};

}  // namespace

std::string functional_target(const std::string& target) {
  constexpr std::string_view prefix = "aten.";
  if (!target.starts_with(prefix)) return {};
  const size_t dot = target.find('.', prefix.size());
  if (dot == std::string::npos) return {};
  const std::string name = target.substr(prefix.size(), dot - prefix.size());
  if (!name.ends_with('_') || name.ends_with("__") || changes_shape_in_place(name)) return {};
  if (target == "aten.normal_.default") return "aten.normal_functional.default";
  if (target == "aten.bernoulli_.float") return "aten.bernoulli.p";
  if (target == "aten.detach_.default") return "aten.detach.default";
  return std::string(prefix) + name.substr(0, name.size() - 1) + target.substr(dot);
}

bool is_supported(const Node& node) {
  if (aten::supports(node.target) || std::ranges::find(higher_order, node.target) != std::end(higher_order)) return true;
  const std::string functional = functional_target(node.target);
  return !functional.empty() && aten::supports(functional);
}

void Walk::set(const Argument& input, Slot slot) {
  if (input.name()) slots_.insert_or_assign(input.name()->text, std::move(slot));
}

Slot Walk::slot(const Argument& a) const {
  if (a.name()) {
    const auto found = slots_.find(a.name()->text);
    if (found == slots_.end()) throw ValueError(fmt::format("the graph's '{}' has no value", a.name()->text));
    return found->second;
  }
  if (a.constant()) return *a.constant();
  throw ValueError("a list where one value is expected");
}

Value Walk::value(const Argument& a) {
  if (a.constant()) return *a.constant();
  if (a.list()) {
    aten::List out;
    for (const Argument& item : *a.list()) out.push_back(value(item));
    return out;
  }
  if (a.foreign()) throw ValueError(fmt::format("{} is not supported", a.foreign()->what));
  if (!a.name()) throw ValueError("a graph where a value is expected");
  const auto found = slots_.find(a.name()->text);
  if (found == slots_.end()) throw ValueError(fmt::format("the graph's '{}' has no value", a.name()->text));
  if (View* view = std::get_if<View>(&found->second)) return view->value(options_);
  return std::get<Value>(found->second);
}

aten::Arguments Walk::arguments(const Node& node) {
  aten::Arguments out;
  for (const auto& [name, a] : node.inputs) out.push_back({name, value(a)});
  return out;
}

void Walk::bind_all(const Node& node, const std::vector<Slot>& results) {
  // A list of tensors is one output with a name for each, or as many outputs.
  std::vector<const Argument*> names;
  for (const Argument& a : node.outputs) {
    if (a.list())
      for (const Argument& item : *a.list()) names.push_back(&item);
    else
      names.push_back(&a);
  }
  if (names.size() != results.size())
    throw FormatError(fmt::format("{}: {} has {} outputs, where it gives {}", node.path, node.target, names.size(), results.size()));
  for (size_t i = 0; i < names.size(); ++i) set(*names[i], results[i]);
}
void Walk::bind(const Node& node, const std::vector<Value>& results) {
  std::vector<Slot> slots;
  const auto add = [&](const Value& v) {
    if (const Tensor* t = v.get_if<Tensor>())
      slots.push_back(View(*t));
    else
      slots.push_back(v);
  };
  for (const Value& v : results) {
    if (const aten::List* list = v.get_if<aten::List>())
      for (const Value& item : *list) add(item);
    else
      add(v);
  }
  bind_all(node, slots);
}

View& Walk::view_of(const Node& node, std::string_view parameter) {
  for (const auto& [name, a] : node.inputs)
    if (name == parameter && a.name())
      if (const auto found = slots_.find(a.name()->text); found != slots_.end())
        if (View* view = std::get_if<View>(&found->second)) return *view;
  throw ValueError(fmt::format("{}: '{}' is no tensor of the graph", node.target, parameter));
}
const TensorMeta* Walk::meta_of(const Node& node, std::string_view parameter) const {
  for (const auto& [name, a] : node.inputs)
    if (name == parameter && a.name())
      if (const auto found = graph_.tensors.find(a.name()->text); found != graph_.tensors.end()) return &found->second;
  return nullptr;
}

/// What strides decide is right only where elements lie row-major.
void Walk::check_strides(const Node& node) const {
  if (node.target != "aten.as_strided.default" && node.target != "aten.sym_stride.int" && node.target != "aten.sym_storage_offset.default")
    return;
  const TensorMeta* meta = meta_of(node, "self");
  if (!meta || !meta->is_plain()) throw ValueError(fmt::format("{}: of a tensor that is not contiguous it is not supported", node.target));
}

void Walk::bind_views(const Node& node, const std::vector<Value>& results) {
  const std::string& first = node.inputs.at(0).first;
  const View from = view_of(node, first);
  ViewStep step{node.target, first, {}};
  for (const auto& [name, a] : node.inputs)
    if (name != first) step.arguments.push_back({name, value(a)});
  std::vector<Slot> slots;
  const auto add = [&](const Value& v) {
    step.place = slots.size();
    slots.push_back(from.then(step, v.tensor()));
  };
  if (const aten::List* list = results[0].get_if<aten::List>())
    for (const Value& item : *list) add(item);
  else
    add(results[0]);
  bind_all(node, slots);
}

void Walk::run_in_place(const Node& node, const std::string& functional) {
  const std::string first = node.inputs.empty() ? "" : node.inputs[0].first;
  View& target = view_of(node, first);
  const Tensor before = target.value(options_);
  if (functional != "aten.detach.default") {
    aten::Arguments all = arguments(node);
    if (functional == "aten.copy.default") std::erase_if(all, [](const aten::Argument& a) { return a.name == "non_blocking"; });
    const Tensor result = aten::call(functional, all, options_)[0].tensor().cast(before.dtype());
    target.write(result.expand(before.symbolic_shape()), options_);
  }
  if (!node.outputs.empty()) bind_all(node, {target});
}

/// In training it writes its running statistics.
bool Walk::run_batch_norm(const Node& node) {
  if (std::ranges::find(batch_norms, node.target) == std::end(batch_norms)) return false;
  aten::Arguments all = arguments(node);
  const auto given = [&](std::string_view name) {
    const auto found = std::ranges::find(all, name, &aten::Argument::name);
    return found == all.end() ? Value() : found->value;
  };
  if (!given("training").get_if<bool>() || !given("training").boolean() || given("running_mean").is_none()) return false;
  std::erase_if(all, [](const aten::Argument& a) { return a.name == "cudnn_enabled"; });
  std::vector<Value> results = aten::call("aten._native_batch_norm_legit_functional.default", all, options_);
  view_of(node, "running_mean").write(results[3].tensor(), options_);
  view_of(node, "running_var").write(results[4].tensor(), options_);
  results.resize(node.target == "aten.batch_norm.default" ? 1 : 3);
  bind(node, results);
  return true;
}

void Walk::run_operator(const Node& node) {
  check_strides(node);
  if (run_batch_norm(node) || run_higher_order(node)) return;
  if (const std::string functional = functional_target(node.target); !functional.empty()) return run_in_place(node, functional);
  const std::vector<Value> results = aten::call(node.target, arguments(node), options_);
  switch (sharing_of(node, arguments(node), results, meta_of(node, node.inputs.empty() ? "" : node.inputs[0].first))) {
    case Sharing::none: return bind(node, results);
    case Sharing::same: return bind_all(node, {view_of(node, node.inputs[0].first)});
    case Sharing::view: return bind_views(node, results);
    case Sharing::unknown: break;
  }
  bind(node, results);
  for (const auto& [name, a] : node.inputs) forbid_writes(a);
  for (const Argument& a : node.outputs) forbid_writes(a);
}

void Walk::forbid_writes(const Argument& a) {
  if (a.list())
    for (const Argument& item : *a.list()) forbid_writes(item);
  if (!a.name()) return;
  if (View* view = std::get_if<View>(&slots_.at(a.name()->text))) view->memory()->may_be_shared = true;
}

void Walk::run_node(const Node& node) {
  try {
    run_operator(node);
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("{}: {}", node.path, error.what()));
  } catch (const ShapeError& error) {
    throw ShapeError(fmt::format("{}: {}", node.path, error.what()));
  } catch (const DTypeError& error) {
    throw DTypeError(fmt::format("{}: {}", node.path, error.what()));
  } catch (const IndexError& error) {
    throw IndexError(fmt::format("{}: {}", node.path, error.what()));
  }
}

void Walk::run() {
  for (const Node& node : graph_.nodes) run_node(node);
}

}  // namespace tinygrad::torch_export
