// Gradients of live tensors.
#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "tensor/handle.h"
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
  if (shape_of(seed) != shape)
    throw ShapeError(fmt::format("backward: the gradient has the shape {}, expects {}", to_string(shape_of(seed)), to_string(shape)));
  return tinygrad::cast(seed, root.dtype());
}

}  // namespace

const Tensor& Tensor::backward(const Tensor& gradient) const {
  const UOp root = uop(), seed = seed_gradient(root, gradient);
  NodeSet in_graph;
  for (const UOp& u : toposort(root)) in_graph.insert(u);
  std::vector<detail::CellPtr> cells;
  std::vector<UOp> nodes;
  for (const detail::CellPtr& c : detail::live_cells()) {
    const UOp node = c->node();
    if (!is_float(node.dtype()) || !c->is_param() || !in_graph.contains(node)) continue;
    cells.push_back(c);
    nodes.push_back(node);
  }
  const std::vector<UOp> grads = ops::gradient(root, seed, nodes);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!grads[i]) continue;
    const Tensor before = cells[i]->grad();
    cells[i]->set_grad(wrap(before.defined() ? ops::add(before.uop(), grads[i]) : grads[i]));
  }
  return *this;
}

std::vector<Tensor> Tensor::gradient(std::span<const Tensor> targets, const Tensor& gradient) const {
  const UOp root = uop();
  const std::vector<UOp> nodes = to_nodes(targets);
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!is_float(nodes[i].dtype()))
      throw DTypeError(fmt::format("gradient: target {} is {}; only tensors of floats have one", i, targets[i].to_string()));
  const std::vector<UOp> grads = ops::gradient(root, seed_gradient(root, gradient), nodes);
  std::vector<Tensor> out;
  for (size_t i = 0; i < grads.size(); ++i) out.push_back(grads[i] ? wrap(grads[i]) : targets[i].zeros_like());
  return out;
}

Tensor Tensor::grad() const { return cell().grad(); }
void Tensor::set_grad(const Tensor& grad) const { cell().set_grad(grad); }
Tensor Tensor::detach() const { return wrap(ops::detach(uop())); }

Tensor& Tensor::is_param_(bool is_param) {
  cell().set_is_param(is_param);
  return *this;
}
bool Tensor::is_param() const { return cell().is_param(); }

}  // namespace tinygrad
