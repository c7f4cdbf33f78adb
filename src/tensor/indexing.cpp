// Indexing: reading and writing parts of a tensor.
#include "ops/index.h"

#include <algorithm>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "base/options.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "shape/device.h"
#include "shape/shape.h"
#include "tensor/handle.h"
#include "tensor/index_check.h"
#include "tensor/memory.h"
#include "tensor/storage.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {

namespace tensor {

namespace {

ops::Index to_index(const Extent& i) { return to_size(i); }
ops::Index to_index(const Slice& s) {
  ops::Slice out{.step = s.step};
  if (s.start) out.start = to_size(*s.start);
  if (s.stop) out.stop = to_size(*s.stop);
  return out;
}
ops::Index to_index(NewAxis n) { return n; }
ops::Index to_index(Ellipsis e) { return e; }
ops::Index to_index(const Tensor& t) { return t.uop(); }

}  // namespace

std::vector<ops::Index> to_indices(std::span<const Index> indices) {
  std::vector<ops::Index> out;
  for (const Index& i : indices) out.push_back(std::visit([](const auto& v) { return to_index(v); }, i.value()));
  return out;
}

}  // namespace tensor

using namespace tensor;

namespace {

const Tensor* mask_of(const Index& index) {
  const Tensor* tensor = index.tensor();
  return tensor && is_bool(tensor->dtype()) ? tensor : nullptr;
}

/// How many axes of the indexed tensor an entry stands for; an ellipsis not counted.
int axes_of(const Index& index) {
  if (const Tensor* mask = mask_of(index)) return mask->ndim();
  return std::holds_alternative<NewAxis>(index.value()) || std::holds_alternative<Ellipsis>(index.value()) ? 0 : 1;
}

/// check_indices() of each tensor among indices. What comes of a mask is in range.
void check_entries(const Tensor& x, std::span<const Index> indices) {
  if (!current_options().check_oob) return;
  int used = 0, axis = 0;
  for (const Index& i : indices) used += axes_of(i);
  for (const Index& i : indices) {
    if (const Tensor* t = i.tensor(); t && !is_bool(t->dtype()) && axis < x.ndim()) check_indices("indexing", *t, x, axis, true);
    axis += std::holds_alternative<Ellipsis>(i.value()) ? x.ndim() - used : axes_of(i);
  }
}

void check_mask(const Sizes& mask, const Sizes& shape, int axis) {
  if (mask.empty()) throw IndexError("a bool mask of shape () as index, expects one axis at least; use where()");
  for (size_t d = 0; d < mask.size(); ++d)
    if (const size_t a = size_t(axis) + d; a >= shape.size() || shape[a] != mask[d])
      throw IndexError(
          fmt::format("a bool mask of {} does not fit {} from axis {} on", to_string(to_shape(mask)), to_string(to_shape(shape)), axis));
}

/// Indices with each bool mask replaced by the positions where it holds. How many there are is read back.
std::vector<ops::Index> without_masks(const Tensor& x, std::span<const Index> indices) {
  int used = 0, axis = 0;
  for (const Index& i : indices) used += axes_of(i);
  std::vector<ops::Index> out;
  for (const Index& i : indices) {
    if (const Tensor* mask = mask_of(i)) {
      check_mask(mask->shape(), x.shape(), axis);
      const UOp rows = mask->nonzero().uop();
      for (int d = 0; d < mask->ndim(); ++d) out.push_back(ops::squeeze(ops::shrink_axis(rows, 1, d, d + 1), 1));
    } else {
      out.push_back(to_indices(std::span(&i, 1))[0]);
    }
    axis += std::holds_alternative<Ellipsis>(i.value()) ? x.ndim() - used : axes_of(i);
  }
  return out;
}

/// The only entry, if it is a mask and one number is written: then nothing need be read back.
const Tensor* only_mask(std::span<const Index> indices, const Operand& value) {
  const Tensor* mask = indices.size() == 1 ? mask_of(indices[0]) : nullptr;
  const Tensor* tensor = mask ? value.tensor() : nullptr;
  return tensor && numel(shape_of(tensor->uop())) != 1 ? nullptr : mask;
}

}  // namespace

Tensor Tensor::operator[](const Index& index) const { return get_item(std::span(&index, 1)); }
Tensor Tensor::operator[](std::initializer_list<Index> indices) const { return get_item({indices.begin(), indices.size()}); }
Tensor Tensor::get_item(std::span<const Index> indices) const {
  check_entries(*this, indices);
  const std::vector<ops::Index> nodes = without_masks(*this, indices);
  return wrap_view(ops::get_item(uop(), nodes));
}

namespace {

bool is_plain(const Index& i) { return !std::holds_alternative<Tensor>(i.value()); }

}  // namespace

Tensor& Tensor::set_item(std::span<const Index> indices, const Operand& value) & {
  const bool stored = is_storage(uop());
  if (const Tensor* given = value.tensor(); given && is_storage(given->uop())) {
    const Tensor there = given->to("CPU");
    return set_item(indices, there);
  }
  if (overlaps_itself(uop()))
    throw ValueError("assign: the tensor is an expanded view, elements of which share memory; write into contiguous()");
  const auto through_cpu = [&]() -> Tensor& {  // nothing is computed there
    Tensor here = to("CPU").clone();
    return assign(here.set_item(indices, value));
  };
  if (stored && !std::ranges::all_of(indices, is_plain)) return through_cpu();
  ops::Operand given = to_operand(value);
  if (given.is_number()) given = checked_cast(given.number(), dtype(), "set_item");
  if (const Tensor* mask = only_mask(indices, value)) {
    Sizes beside = mask->shape();
    check_mask(beside, shape(), 0);
    beside.resize(size_t(ndim()), 1);
    const ops::Operand number = given.is_weak() ? given : ops::Operand(ops::reshape(given.node(), {}));
    return assign(wrap(tinygrad::cast(ops::where(mask->reshape(beside).uop(), number, uop(), context()), dtype())));
  }
  check_entries(*this, indices);
  const std::vector<ops::Index> nodes = without_masks(*this, indices);
  const UOp node = ops::get_item(uop(), nodes);
  if (base_of_view(node) != base_of_view(uop()))
    return stored ? through_cpu() : assign(wrap(tinygrad::cast(ops::set_item(uop(), nodes, given), dtype())));
  UOp written = tinygrad::cast(ops::as_node(given, context()), node.dtype());
  while (rank_of(written) > rank_of(node) && shape_of(written)[0] == 1) written = ops::squeeze(written, 0);  // as in NumPy
  wrap_view(node).assign(wrap_view(ops::broadcast_to(written, shape_of(node))));
  return *this;
}

namespace {
/// Indices along an axis.
Tensor checked(const char* op, const Tensor& x, int axis, const Tensor& index) {
  check_indices(op, index, x, axis < 0 ? axis + x.ndim() : axis);
  return index;
}
}  // namespace

Tensor Tensor::gather(int axis, const Tensor& index) const {
  return wrap(ops::gather(uop(), axis, checked("gather", *this, axis, index).uop()));
}
Tensor Tensor::scatter(int axis, const Tensor& index, const Operand& src) const {
  return wrap(ops::scatter(uop(), axis, checked("scatter", *this, axis, index).uop(), to_operand(src)));
}
Tensor Tensor::scatter_reduce(int axis, const Tensor& index, const Tensor& src, ScatterMode mode, bool include_self) const {
  return wrap(ops::scatter_reduce(uop(), axis, checked("scatter_reduce", *this, axis, index).uop(), src.uop(), mode, include_self));
}
Tensor Tensor::one_hot(int64_t classes) const { return wrap(ops::one_hot(uop(), classes)); }

namespace {
int64_t count_true(const Tensor& mask) { return mask.sum({}, {.dtype = DType::int64}).item<int64_t>(); }
}  // namespace

Tensor Tensor::masked_select(const Tensor& mask, std::optional<int64_t> size, const Operand& fill) const {
  const UOp m = mask.uop();
  if (!is_bool(m.dtype())) throw DTypeError(fmt::format("masked_select: the mask is {}, expects dtypes.bool", repr(m.dtype())));
  const Shape all = ops::broadcast_shape(shape_of(uop()), shape_of(m), "masked_select");
  const Tensor whole = wrap(ops::broadcast_to(m, all));
  return wrap(ops::masked_select(ops::broadcast_to(uop(), all), whole.uop(), size ? *size : count_true(whole), to_operand(fill)));
}
Tensor Tensor::nonzero(std::optional<int64_t> size, const Operand& fill) const {
  return wrap(ops::nonzero(uop(), size ? *size : count_true(ne(0)), to_operand(fill)));
}

}  // namespace tinygrad
