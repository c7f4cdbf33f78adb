// Creation, views, indexing.
#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "shape/device.h"
#include "tensor/handle.h"
#include "tensor/memory.h"

namespace tinygrad {

using namespace tensor;

Tensor Tensor::full(const Sizes& shape, const Operand& value, const TensorOptions& o) {
  return wrap(ops::full(to_shape(shape), to_operand(value), o.dtype, context_on(o.device)));
}
Tensor Tensor::zeros(const Sizes& shape, const TensorOptions& o) {
  return wrap(ops::zeros(to_shape(shape), o.dtype, context_on(o.device)));
}
Tensor Tensor::ones(const Sizes& shape, const TensorOptions& o) { return wrap(ops::ones(to_shape(shape), o.dtype, context_on(o.device))); }
Tensor Tensor::empty(const Sizes& shape, const TensorOptions& o) {
  const ops::OpsContext ctx = context_on(o.device);
  return wrap(make_memory(to_shape(shape), o.dtype.value_or(ctx.default_float), ctx.device));
}
Tensor Tensor::arange(int64_t stop, const TensorOptions& o) { return arange(int64_t{0}, stop, 1, o); }
Tensor Tensor::arange(int64_t start, int64_t stop, int64_t step, const TensorOptions& o) {
  return wrap(ops::arange(Scalar::of(start), Scalar::of(stop), Scalar::of(step), o.dtype, context_on(o.device)));
}
Tensor Tensor::arange(double start, double stop, double step, const TensorOptions& o) {
  return wrap(ops::arange(Scalar::of(start), Scalar::of(stop), Scalar::of(step), o.dtype, context_on(o.device)));
}
Tensor Tensor::linspace(double start, double stop, int64_t steps, const TensorOptions& o) {
  return wrap(ops::linspace(start, stop, steps, o.dtype, context_on(o.device)));
}
Tensor Tensor::eye(int64_t n, std::optional<int64_t> m, const TensorOptions& o) {
  return wrap(ops::eye(n, m ? std::optional<SInt>(*m) : std::nullopt, o.dtype, context_on(o.device)));
}
Tensor Tensor::full_like(const Operand& value, std::optional<DType> dtype) const {
  return wrap(ops::full_like(uop(), to_operand(value), dtype));
}
Tensor Tensor::zeros_like(std::optional<DType> dtype) const { return wrap(ops::zeros_like(uop(), dtype)); }
Tensor Tensor::ones_like(std::optional<DType> dtype) const { return wrap(ops::ones_like(uop(), dtype)); }

namespace {
ops::Pairs to_pairs(const std::vector<std::pair<int64_t, int64_t>>& given) {
  ops::Pairs out;
  for (const auto& [a, b] : given) out.push_back({a, b});
  return out;
}

std::vector<Tensor> wrap_all(const std::vector<UOp>& nodes) {
  std::vector<Tensor> out;
  for (const UOp& n : nodes) out.push_back(wrap(n));
  return out;
}
}  // namespace

Tensor Tensor::reshape(const Sizes& shape) const { return wrap(ops::reshape(uop(), to_shape(shape))); }
Tensor Tensor::expand(const Sizes& shape) const { return wrap(ops::expand(uop(), to_shape(shape))); }
Tensor Tensor::permute(const std::vector<int>& order) const { return wrap(ops::permute(uop(), to_axes(order))); }
Tensor Tensor::transpose(int axis0, int axis1) const { return wrap(ops::transpose(uop(), axis0, axis1)); }
Tensor Tensor::flip(const AxisList& axes) const { return wrap(ops::flip(uop(), to_axes(axes).resolve("flip", rank_of(uop())))); }
Tensor Tensor::shrink(const std::vector<std::pair<int64_t, int64_t>>& bounds) const { return wrap(ops::shrink(uop(), to_pairs(bounds))); }
Tensor Tensor::pad(const std::vector<std::pair<int64_t, int64_t>>& amounts, const Operand& value, PadMode mode) const {
  return wrap(ops::pad(uop(), to_pairs(amounts), to_operand(value), static_cast<ops::PadMode>(mode)));
}
Tensor Tensor::squeeze() const { return wrap(ops::squeeze(uop())); }
Tensor Tensor::squeeze(int axis) const { return wrap(ops::squeeze(uop(), axis)); }
Tensor Tensor::unsqueeze(int axis) const { return wrap(ops::unsqueeze(uop(), axis)); }
Tensor Tensor::flatten(int start, int end) const { return wrap(ops::flatten(uop(), start, end)); }
Tensor Tensor::unflatten(int axis, const Sizes& sizes) const { return wrap(ops::unflatten(uop(), axis, to_shape(sizes))); }
Tensor Tensor::repeat(const Sizes& repeats) const { return wrap(ops::repeat(uop(), to_shape(repeats))); }
Tensor Tensor::cat(std::span<const Tensor> tensors, int axis) { return wrap(ops::cat(to_nodes(tensors), axis)); }
Tensor Tensor::stack(std::span<const Tensor> tensors, int axis) { return wrap(ops::stack(to_nodes(tensors), axis)); }
std::vector<Tensor> Tensor::split(int64_t size, int axis) const { return wrap_all(ops::split(uop(), size, axis)); }
std::vector<Tensor> Tensor::chunk(int64_t chunks, int axis) const { return wrap_all(ops::chunk(uop(), chunks, axis)); }

Tensor Tensor::operator[](const Index& index) const { return wrap(ops::get_item(uop(), to_indices(std::span(&index, 1)))); }
Tensor Tensor::operator[](std::initializer_list<Index> indices) const {
  return wrap(ops::get_item(uop(), to_indices({indices.begin(), indices.size()})));
}
Tensor Tensor::gather(int axis, const Tensor& index) const { return wrap(ops::gather(uop(), axis, index.uop())); }
Tensor Tensor::one_hot(int64_t classes) const { return wrap(ops::one_hot(uop(), classes)); }
Tensor Tensor::triu(int64_t diagonal) const { return wrap(ops::triu(uop(), diagonal)); }
Tensor Tensor::tril(int64_t diagonal) const { return wrap(ops::tril(uop(), diagonal)); }

}  // namespace tinygrad
