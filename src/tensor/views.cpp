// Creation and views.
#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "shape/device.h"
#include "tensor/handle.h"
#include "tensor/memory.h"
#include "tensor/storage.h"

namespace tinygrad {

using namespace tensor;

Tensor Tensor::full(const Extents& shape, const Operand& value, const TensorOptions& o) {
  return wrap(built_on(o.device, [&](const ops::OpsContext& ctx) { return ops::full(to_shape(shape), to_operand(value), o.dtype, ctx); }));
}
Tensor Tensor::scalar(const Operand& value, const TensorOptions& o) {
  const UOp number = built_on(o.device, [&](const ops::OpsContext& ctx) { return ops::full({}, to_operand(value), o.dtype, ctx); });
  return wrap(o.dtype ? number : ops::weak(number));
}
Tensor Tensor::zeros(const Extents& shape, const TensorOptions& o) {
  return wrap(built_on(o.device, [&](const ops::OpsContext& ctx) { return ops::zeros(to_shape(shape), o.dtype, ctx); }));
}
Tensor Tensor::ones(const Extents& shape, const TensorOptions& o) {
  return wrap(built_on(o.device, [&](const ops::OpsContext& ctx) { return ops::ones(to_shape(shape), o.dtype, ctx); }));
}
Tensor Tensor::empty(const Extents& shape, const TensorOptions& o) {
  const Devices devices = named_devices(o.device);
  const Shape sizes = to_shape(shape);
  for (const SInt& s : sizes)
    if (less_now(s, 0)) throw ShapeError(fmt::format("empty: {} has a negative size", tinygrad::to_string(sizes)));
  const UOp memory = make_memory(sizes, of_values(o.dtype.value_or(context().default_float)), ShardingArg{devices, {}});
  if (is_storage(memory)) buffer_of(state_of_view(memory)).ensure_allocated();  // it may hold something already
  return wrap_view(memory);
}
Tensor Tensor::arange(int64_t stop, const TensorOptions& o) { return arange(int64_t{0}, stop, 1, o); }
Tensor Tensor::arange(const Extent& stop, const TensorOptions& o) {
  return wrap(built_on(o.device, [&](const ops::OpsContext& ctx) { return ops::arange(to_size(stop), o.dtype, ctx); }));
}
Tensor Tensor::arange(const Extent& start, const Extent& stop, int64_t step, const TensorOptions& o) {
  return wrap(
      built_on(o.device, [&](const ops::OpsContext& ctx) { return ops::arange(to_size(start), to_size(stop), step, o.dtype, ctx); }));
}
Tensor Tensor::arange(int64_t start, int64_t stop, int64_t step, const TensorOptions& o) {
  return wrap(built_on(o.device, [&](const ops::OpsContext& ctx) {
    return ops::arange(Scalar::of(start), Scalar::of(stop), Scalar::of(step), o.dtype, ctx);
  }));
}
Tensor Tensor::arange(double start, double stop, double step, const TensorOptions& o) {
  return wrap(built_on(o.device, [&](const ops::OpsContext& ctx) {
    return ops::arange(Scalar::of(start), Scalar::of(stop), Scalar::of(step), o.dtype, ctx);
  }));
}
Tensor Tensor::linspace(double start, double stop, int64_t steps, const TensorOptions& o) {
  return wrap(built_on(o.device, [&](const ops::OpsContext& ctx) { return ops::linspace(start, stop, steps, o.dtype, ctx); }));
}
Tensor Tensor::eye(int64_t n, std::optional<int64_t> m, const TensorOptions& o) {
  return wrap(built_on(o.device,
                       [&](const ops::OpsContext& ctx) { return ops::eye(n, m ? std::optional<SInt>(*m) : std::nullopt, o.dtype, ctx); }));
}
Tensor Tensor::constant(const Operand& value, std::optional<DType> dtype) const {
  return wrap(
      built_on(device(), [&](const ops::OpsContext& ctx) { return ops::full({}, to_operand(value), dtype.value_or(this->dtype()), ctx); }));
}
Tensor Tensor::empty_like(const TensorOptions& o) const {
  return empty(symbolic_shape(), {o.dtype.value_or(dtype()), o.device.empty() ? device() : o.device});
}
Tensor Tensor::full_like(const Operand& value, std::optional<DType> dtype) const {
  return wrap(placed_like(uop(), ops::full_like(uop(), to_operand(value), dtype)));
}
Tensor Tensor::full_like(const Operand& value, const TensorOptions& o) const {
  if (o.device.empty()) return full_like(value, o.dtype);
  return wrap(built_on(
      o.device, [&](const ops::OpsContext& ctx) { return ops::full(shape_of(uop()), to_operand(value), o.dtype.value_or(dtype()), ctx); }));
}

namespace {
ops::Pairs to_pairs(const ExtentPairs& given) {
  ops::Pairs out;
  for (const auto& [a, b] : given) out.push_back({to_size(a), to_size(b)});
  return out;
}

std::vector<Tensor> wrap_all(const std::vector<UOp>& nodes) {
  std::vector<Tensor> out;
  for (const UOp& n : nodes) out.push_back(wrap_view(n));
  return out;
}
}  // namespace

Tensor Tensor::reshape(const Extents& shape) const { return wrap_view(ops::reshape(uop(), to_shape(shape))); }
Tensor Tensor::expand(const Extents& shape) const { return wrap_view(ops::expand(uop(), to_shape(shape))); }
Tensor Tensor::permute(const std::vector<int>& order) const { return wrap_view(ops::permute(uop(), to_axes(order))); }
Tensor Tensor::transpose(int axis0, int axis1) const { return wrap_view(ops::transpose(uop(), axis0, axis1)); }
Tensor Tensor::flip(const AxisList& axes) const { return wrap_view(ops::flip(uop(), to_axes(axes).resolve("flip", rank_of(uop())))); }
Tensor Tensor::shrink(const ExtentPairs& bounds) const { return wrap_view(ops::shrink(uop(), to_pairs(bounds))); }
Tensor Tensor::pad(const ExtentPairs& amounts, const Operand& value, PadMode mode) const {
  return wrap(ops::pad(uop(), to_pairs(amounts), to_operand(value), mode));
}
Tensor Tensor::shrink_to(const Extents& shape) const { return wrap_view(ops::shrink_to(uop(), to_shape(shape))); }
Tensor Tensor::pad_to(const Extents& shape, const Operand& value) const {
  return wrap(ops::pad_to(uop(), to_shape(shape), to_operand(value)));
}
Tensor Tensor::squeeze() const { return wrap_view(ops::squeeze(uop())); }
Tensor Tensor::squeeze(int axis) const { return wrap_view(ops::squeeze(uop(), axis)); }
Tensor Tensor::unsqueeze(int axis) const { return wrap_view(ops::unsqueeze(uop(), axis)); }
Tensor Tensor::flatten(int start, int end) const { return wrap_view(ops::flatten(uop(), start, end)); }
Tensor Tensor::unflatten(int axis, const Extents& sizes) const { return wrap_view(ops::unflatten(uop(), axis, to_shape(sizes))); }
Tensor Tensor::repeat(const Extents& repeats) const { return wrap(ops::repeat(uop(), to_shape(repeats))); }
Tensor Tensor::rearrange(std::string_view formula, const std::vector<std::pair<std::string, int64_t>>& sizes) const {
  std::vector<ops::NamedSize> named;
  for (const auto& [name, size] : sizes) named.emplace_back(name, size);
  return wrap_view(ops::rearrange(uop(), formula, named));
}
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int> axis) const {
  return wrap(ops::repeat_interleave(uop(), repeats, axis));
}
Tensor Tensor::roll(const Sizes& shifts, const std::vector<int>& axes) const { return wrap(ops::roll(uop(), shifts, to_axes(axes))); }
Tensor Tensor::unfold(int axis, int64_t size, int64_t step) const { return wrap(ops::unfold(uop(), axis, size, step)); }
Tensor Tensor::diag() const { return wrap(ops::diag(uop())); }
Tensor Tensor::diagonal(int offset, int axis0, int axis1) const { return wrap_view(ops::diagonal(uop(), offset, axis0, axis1)); }
std::vector<Tensor> Tensor::meshgrid(std::span<const Tensor> tensors, bool xy) { return wrap_all(ops::meshgrid(to_nodes(tensors), xy)); }
Tensor Tensor::cat(std::span<const Tensor> tensors, int axis) { return wrap(ops::cat(to_nodes(tensors), axis)); }
Tensor Tensor::stack(std::span<const Tensor> tensors, int axis) { return wrap(ops::stack(to_nodes(tensors), axis)); }
std::vector<Tensor> Tensor::split(int64_t size, int axis) const { return wrap_all(ops::split(uop(), size, axis)); }
std::vector<Tensor> Tensor::split(const Sizes& sizes, int axis) const {
  return wrap_all(ops::split(uop(), std::span<const int64_t>(sizes), axis));
}
std::vector<Tensor> Tensor::chunk(int64_t chunks, int axis) const { return wrap_all(ops::chunk(uop(), chunks, axis)); }

Tensor Tensor::triu(const Extent& diagonal) const { return wrap(ops::triu(uop(), to_size(diagonal))); }
Tensor Tensor::tril(const Extent& diagonal) const { return wrap(ops::tril(uop(), to_size(diagonal))); }

}  // namespace tinygrad
