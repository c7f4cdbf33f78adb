#pragma once
/// How the methods of Tensor reach the graph builders.

#include <string_view>

#include <tinygrad/tensor.h>

#include "ops/index.h"
#include "ops/operand.h"
#include "ops/reduce.h"
#include "shape/device.h"
#include "tensor/cell.h"

namespace tinygrad::tensor {

/// The user's settings for builders; `device` is where created values live, resolved from its name (the default where empty).
ops::OpsContext context();
ops::OpsContext context_on(std::string_view device);

/// The devices of a list with commas, by the names they have; the default one for an empty list.
Devices named_devices(std::string_view list);
/// A value put there.
UOp placed(const UOp& x, const ShardingArg& where);
/// A value that is divided as another one where that is on several devices; as it is otherwise.
UOp placed_like(const UOp& other, const UOp& x);
/// The same of memory for it: what the other's readers gather is gathered by its readers, too.
UOp placed_as_memory(const UOp& other, const UOp& x);
/// The same of what a builder makes for a device, or for a list of several of which it need not know.
template <class Build>
UOp built_on(std::string_view devices, Build&& build) {
  if (devices.find(',') == std::string_view::npos) return build(context_on(devices));
  return placed(build(context()), {named_devices(devices), {}});
}

/// A number or a tensor as a builder takes it.
ops::Operand to_operand(const Operand& x);
std::vector<UOp> to_nodes(std::span<const Tensor> tensors);

/// What a method computed: a value of its own, also where the builder gave back what it got. DeviceError if it is of values on several
/// devices. It is named after its method, which calls this.
inline Tensor wrap(const UOp& node, const char* operation = __builtin_FUNCTION()) {
  devices_of(node);
  return Tensor::from_value(node, operation);
}
/// What a method that gives views made.
inline Tensor wrap_view(const UOp& node, const char* operation = __builtin_FUNCTION()) {
  devices_of(node);
  return Tensor::from_uop(node, operation);
}

/// The dtype; DTypeError for `void`, which no tensor has.
DType of_values(DType dtype);

Shape to_shape(const Sizes& sizes);
Shape to_shape(const Extents& sizes);
SInt to_size(const Extent& extent);
Extent to_extent(const SInt& size);
Axes to_axes(const std::vector<int>& axes);
ops::ReduceAxes to_axes(const AxisList& axes);
/// The BIND of a variable that has a value, the VAR of one that has none.
UOp bound_node(const Variable& variable);
std::vector<ops::Index> to_indices(std::span<const Index> indices);

}  // namespace tinygrad::tensor
