// Operators of higher order: they run graphs.
#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/errors.h>

#include "frontend/torch_export/walk.h"

namespace tinygrad::torch_export {

using aten::Value;

namespace {

const Graph& graph_at(const Node& node, size_t i) {
  if (i >= node.inputs.size() || !node.inputs[i].second.graph())
    throw FormatError(fmt::format("{}: {} has no graph as its argument {}", node.path, node.target, i));
  return **node.inputs[i].second.graph();
}
/// The arguments from a place on, one after another.
std::vector<const Argument*> flat_arguments(const Node& node, size_t from) {
  std::vector<const Argument*> out;
  for (size_t i = from; i < node.inputs.size(); ++i) {
    const Argument& a = node.inputs[i].second;
    if (a.list())
      for (const Argument& item : *a.list()) out.push_back(&item);
    else
      out.push_back(&a);
  }
  return out;
}
Tensor as_tensor(const Slot& slot, const aten::CallOptions& options) {
  if (const View* view = std::get_if<View>(&slot)) return View(*view).value(options);
  const Value& v = std::get<Value>(slot);
  if (v.get_if<double>()) return Tensor::full({}, v.number(), {.dtype = DType::float64, .device = options.device});
  if (v.get_if<bool>()) return Tensor::full({}, v.boolean(), {.dtype = DType::bool_, .device = options.device});
  return Tensor::full({}, v.integer(), {.dtype = DType::int64, .device = options.device});
}

}  // namespace

std::vector<Slot> Walk::run_inner(const Graph& inner, const std::vector<Slot>& inputs) {
  if (inner.inputs.size() != inputs.size())
    throw FormatError(fmt::format("an inner graph takes {} inputs, where {} are given", inner.inputs.size(), inputs.size()));
  Walk walk(inner, options_);
  for (size_t i = 0; i < inputs.size(); ++i) walk.set(inner.inputs[i], inputs[i]);
  walk.run();
  std::vector<Slot> out;
  for (const Argument& a : inner.outputs) {
    if (a.list())
      for (const Argument& item : *a.list()) out.push_back(walk.slot(item));
    else
      out.push_back(walk.slot(a));
  }
  return out;
}

/// A condition that is a tensor chooses between the results of both graphs, which have no effects.
void Walk::run_cond(const Node& node) {
  const Graph &yes = graph_at(node, 1), &no = graph_at(node, 2);
  std::vector<Slot> inputs;
  for (const Argument* a : flat_arguments(node, 3)) inputs.push_back(slot(*a));
  const Value condition = value(node.inputs[0].second);
  if (!condition.get_if<Tensor>()) return bind_all(node, run_inner(condition.boolean() ? yes : no, inputs));
  const std::vector<Slot> a = run_inner(yes, inputs), b = run_inner(no, inputs);
  if (a.size() != b.size()) throw FormatError(fmt::format("{}: the graphs give {} and {} results", node.path, a.size(), b.size()));
  const Tensor holds = condition.tensor().reshape({}).cast(DType::bool_);
  std::vector<Slot> out;
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor x = as_tensor(a[i], options_), y = as_tensor(b[i], options_);
    if (x.shape() != y.shape() || x.dtype() != y.dtype())
      throw ValueError("the graphs of a condition that is a tensor give different shapes or dtypes");
    out.push_back(View(holds.where(x, y)));
  }
  bind_all(node, out);
}

/// The condition is read before each turn.
void Walk::run_while(const Node& node) {
  const Graph &condition = graph_at(node, 0), &body = graph_at(node, 1);
  if (node.inputs.size() < 3) throw FormatError(fmt::format("{}: {} has no values to carry", node.path, node.target));
  std::vector<Slot> carried, more;
  const Argument& first = node.inputs[2].second;
  if (!first.list()) throw FormatError(fmt::format("{}: {} carries no list", node.path, node.target));
  for (const Argument& a : *first.list()) carried.push_back(slot(a));
  for (const Argument* a : flat_arguments(node, 3)) more.push_back(slot(*a));
  const auto all = [&] {
    std::vector<Slot> out = carried;
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  const auto goes_on = [&] {
    const std::vector<Slot> result = run_inner(condition, all());
    if (result.size() != 1) throw FormatError(fmt::format("{}: a condition of {} results", node.path, result.size()));
    return as_tensor(result[0], options_).item<bool>();
  };
  while (goes_on()) {
    const size_t count = carried.size();
    carried = run_inner(body, all());
    if (carried.size() != count) throw FormatError(fmt::format("{}: a turn gives {} values of {}", node.path, carried.size(), count));
  }
  bind_all(node, carried);
}

/// The graph runs for each element of the first axis.
void Walk::run_map(const Node& node) {
  const Graph& body = graph_at(node, 0);
  if (node.inputs.size() < 2 || !node.inputs[1].second.list())
    throw FormatError(fmt::format("{}: {} has no tensors to map", node.path, node.target));
  std::vector<Tensor> mapped;
  for (const Argument& a : *node.inputs[1].second.list()) mapped.push_back(value(a).tensor());
  std::vector<Slot> more;
  for (const Argument* a : flat_arguments(node, 2)) more.push_back(slot(*a));
  if (mapped.empty() || mapped[0].ndim() == 0 || mapped[0].size(0) == 0) throw ValueError("nothing to map");
  std::vector<std::vector<Tensor>> results;
  for (int64_t i = 0; i < mapped[0].size(0); ++i) {
    std::vector<Slot> inputs;
    for (const Tensor& t : mapped) inputs.push_back(View(t[{i}]));
    inputs.insert(inputs.end(), more.begin(), more.end());
    const std::vector<Slot> one = run_inner(body, inputs);
    results.resize(one.size());
    for (size_t j = 0; j < one.size(); ++j) results[j].push_back(as_tensor(one[j], options_));
  }
  std::vector<Slot> out;
  for (const std::vector<Tensor>& all : results) out.push_back(View(Tensor::stack(all)));
  bind_all(node, out);
}

bool Walk::run_higher_order(const Node& node) {
  if (node.target == "higher_order.cond") {
    if (node.inputs.size() < 3) throw FormatError(fmt::format("{}: {} has {} arguments", node.path, node.target, node.inputs.size()));
    run_cond(node);
  } else if (node.target == "higher_order.while_loop") {
    run_while(node);
  } else if (node.target == "higher_order.map_impl") {
    run_map(node);
  } else if (node.target == "higher_order.wrap_with_set_grad_enabled") {
    std::vector<Slot> inputs;
    for (const Argument* a : flat_arguments(node, 2)) inputs.push_back(slot(*a));
    bind_all(node, run_inner(graph_at(node, 1), inputs));
  } else {
    return false;
  }
  return true;
}

}  // namespace tinygrad::torch_export
