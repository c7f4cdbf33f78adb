#pragma once
/// Indexing: slices, integers and new axes as views, tensors of indices as gathers.

#include <optional>
#include <variant>

#include <tinygrad/op_arguments.h>

#include "ops/operand.h"

namespace tinygrad::ops {

/// start:stop:step as in Python; the step may be negative.
struct Slice {
  std::optional<SInt> start = {}, stop = {};
  int64_t step = 1;
};
/// One entry of x[...]: an index, a slice, a new axis, "...", a tensor of integer indices or a bool mask.
using Index = std::variant<SInt, Slice, NewAxis, Ellipsis, UOp>;

/// x[indices]. Tensor indices broadcast together; their axes come where the first index tensor stands if all stand together, else first.
/// An index out of range is an IndexError if it is known now; in a tensor it selects 0. Masks need masked_select or `where`: their
/// result's size depends on the data.
UOp get_item(const UOp& x, std::span<const Index> indices);
/// The value of x after x[indices] = value: the value broadcasts to the indexed part. Where an index tensor names an element more than
/// once, the last wins.
UOp set_item(const UOp& x, std::span<const Index> indices, const Operand& value);

/// Compares the indices with 0 ... classes-1 along a new last axis: int32 ones and zeros (`dtype` to choose).
UOp one_hot(const UOp& indices, const SInt& classes, DType dtype = DType::int32);
/// out[i][j] = x[index[i][j]][j] for axis 0, and so on. A sum over the axis of x where its position equals the index, which lowering turns
/// into one load; an index out of range gives 0.
UOp gather(const UOp& x, int axis, const UOp& index);
/// Rows of `weight` (rows, features): shape of `indices` and a last axis of features.
UOp embedding(const UOp& weight, const UOp& indices);
/// x with src[i][j] combined into x[index[i][j]][j] (for axis 0), or only those if include_self is false.
UOp scatter_reduce(const UOp& x, int axis, const UOp& index, const UOp& src, ScatterMode reduce, bool include_self = true);
/// x with x[index[i][j]][j] = src[i][j] (for axis 0); the last of several wins.
UOp scatter(const UOp& x, int axis, const UOp& index, const Operand& src);
/// The first `size` elements of x where the mask holds, then `fill`.
UOp masked_select(const UOp& x, const UOp& mask, int64_t size, const Operand& fill = 0);
/// The indices, one row each, of the first `size` elements that are not 0, then `fill`; int32.
UOp nonzero(const UOp& x, int64_t size, const Operand& fill = 0);

}  // namespace tinygrad::ops
