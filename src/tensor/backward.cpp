// Gradients of live tensors.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include <tinygrad/errors.h>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/movement.h"
#include "shape/device.h"
#include "shape/sharding.h"
#include "tensor/handle.h"
#include "tensor/history.h"
#include "tensor/memory.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {

using namespace tensor;

namespace {

UOp seed_gradient(const UOp& root, const Tensor& given) {
  const Shape& shape = shape_of(root);
  if (!is_float(root.dtype()))
    throw DTypeError(fmt::format("backward: {} has no gradient; only tensors of floats have one", repr(root.dtype())));
  if (!given.defined()) {
    if (!(numel(shape) == 1))
      throw ShapeError(fmt::format("backward: the tensor has the shape {}, expects one element; give the gradient or reduce it first",
                                   to_string(shape)));
    return ops::ones_like(root);
  }
  const UOp seed = given.uop();
  if (!is_float(seed.dtype()))
    throw DTypeError(fmt::format("backward: the gradient is {}, expects a float dtype such as {}", repr(seed.dtype()), repr(root.dtype())));
  // One element is one element, whatever the number of its axes.
  if (numel(shape) == 1 && numel(shape_of(seed)) == 1) return tinygrad::cast(ops::reshape(seed, shape), root.dtype());
  if (shape_of(seed) != shape)
    throw ShapeError(fmt::format("backward: the gradient has the shape {}, expects {}", to_string(shape_of(seed)), to_string(shape)));
  return tinygrad::cast(seed, root.dtype());
}

}  // namespace

namespace {

/// The gradient with respect to each tensor: all TENSORs in the graph that have its id are that variable. A null one where there are none.
std::vector<UOp> gradients_of(const UOp& root, const UOp& seed, const std::unordered_map<uint64_t, size_t>& places) {
  std::vector<UOp> nodes, out(places.size());
  std::vector<size_t> places_of_nodes;
  for (const UOp& u : ops::gradient_nodes(root))
    if (u.is(Op::TENSOR))
      if (const auto place = places.find(u.arg_as<TensorArg>().id); place != places.end()) {
        nodes.push_back(u);
        places_of_nodes.push_back(place->second);
      }
  const std::vector<UOp> grads = ops::gradient(root, seed, nodes);
  check_unchanged(grads);
  for (size_t i = 0; i < nodes.size(); ++i) {
    UOp& total = out[places_of_nodes[i]];
    if (grads[i]) total = total ? ops::add(total, grads[i]) : grads[i];
  }
  return out;
}

uint64_t id_of(const UOp& tensor) { return tensor.arg_as<TensorArg>().id; }

/// Divided as the tensor's memory is where its readers gather that.
UOp divided_as_memory(const UOp& gradient, const UOp& tensor) {
  if (!devices_of(tensor).are_several()) return gradient;
  const ShardingArg where = Placements().of(tensor);
  return has_gathered_axes(where) ? placed(gradient, {where.devices, stored_axes(where)}) : gradient;
}

/// The tensor gets the gradient, or adds it to the one it has, which stays the same tensor.
void accumulate(detail::TensorCell& cell, const UOp& gradient) {
  Tensor before = cell.grad();
  if (!before.defined()) return cell.set_grad(wrap(gradient, "backward"));
  const Tensor sum = wrap(ops::add(before.uop(), gradient), "backward");
  if (overlaps_itself(before.uop()) || sum.dtype() != before.dtype() || sum.symbolic_shape() != before.symbolic_shape())
    before.replace(sum);
  else
    before.assign(sum);
}

}  // namespace

const Tensor& Tensor::backward(const Tensor& gradient) const& {
  const UOp root = uop(), seed = seed_gradient(root, gradient);
  std::unordered_set<uint64_t> in_graph;
  for (const UOp& u : ops::gradient_nodes(root))
    if (u.is(Op::TENSOR)) in_graph.insert(id_of(u));
  std::vector<detail::CellPtr> cells;
  std::unordered_map<uint64_t, size_t> places;
  uint64_t oldest = std::numeric_limits<uint64_t>::max();  // whose gradient is asked for, found or not
  for (const detail::CellPtr& c : detail::live_cells()) {
    const UOp node = c->node();
    if (!is_float(node.dtype()) || !c->is_param()) continue;
    oldest = std::min(oldest, id_of(node));
    if (!in_graph.contains(id_of(node))) continue;
    places.emplace(id_of(node), cells.size());
    cells.push_back(c);
  }
  check_history(root, oldest);
  const std::vector<UOp> grads = gradients_of(root, seed, places);
  for (size_t i = 0; i < cells.size(); ++i)
    if (grads[i]) accumulate(*cells[i], divided_as_memory(grads[i], cells[i]->node()));
  return *this;
}

std::vector<Tensor> Tensor::gradient(std::span<const Tensor> targets, const Tensor& gradient) const {
  const UOp root = uop();
  const std::vector<UOp> nodes = to_nodes(targets);
  std::unordered_map<uint64_t, size_t> places;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!is_float(nodes[i].dtype()))
      throw DTypeError(fmt::format("gradient: target {} is {}; only tensors of floats have one", i, targets[i].to_string()));
    places.emplace(id_of(nodes[i]), places.size());
  }
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (const auto& [id, place] : places) oldest = std::min(oldest, id);
  check_history(root, oldest);
  const std::vector<UOp> grads = gradients_of(root, seed_gradient(root, gradient), places);
  std::vector<Tensor> out;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const UOp& g = grads[places.at(id_of(nodes[i]))];
    out.push_back(g ? wrap(divided_as_memory(g, nodes[i])) : targets[i].zeros_like());
  }
  return out;
}

Tensor Tensor::grad() const { return cell().grad(); }
void Tensor::set_grad(const Tensor& grad) const {
  if (grad.defined() && shape_of(grad.uop()) != shape_of(uop()))
    throw ShapeError(fmt::format("grad: a gradient of the shape {} for a tensor of the shape {}; they must be equal",
                                 tinygrad::to_string(shape_of(grad.uop())), tinygrad::to_string(shape_of(uop()))));
  cell().set_grad(grad);
}
Tensor Tensor::detach() const { return wrap_view(ops::detach(uop())); }

Tensor& Tensor::is_param_(bool is_param) & {
  cell().set_is_param(is_param);
  return *this;
}
bool Tensor::is_param() const { return cell().is_param(); }

}  // namespace tinygrad
