#pragma once
/// Values that are memory: BUFFERs seen through movement ops.

#include <cstddef>
#include <span>

#include "device/buffer.h"
#include "shape/shape.h"
#include "uop/uop.h"

namespace tinygrad::tensor {

/// The state of memory that a view shows: the BUFFER or AFTER under a chain of movement ops; null for a value that is computed.
UOp state_of_view(const UOp& node);

/// The BUFFER of a state.
UOp buffer_of_state(const UOp& state);

/// `view` without the DETACHes in it: what a STORE may name.
UOp without_detach(const UOp& view);

/// True where two elements of a view may be one place in memory.
bool overlaps_itself(const UOp& view);

/// A BUFFER that is all elements in row-major order, reshaped or not, in its first state; null otherwise.
UOp whole_buffer(const UOp& node);

/// Fresh memory for a value of this shape on a device, as a node of that shape. Sizes not known before launch get room for their bounds.
UOp make_memory(const Shape& shape, DType dtype, Symbol device);

/// The value in memory that nothing else shares, into which it is stored when it is needed. Nodes that are equal are one node and get one
/// memory, so that CONTIGUOUS alone would not keep two copies of a value apart.
UOp copied(const UOp& value);

/// Fresh memory with these bytes, as a vector of `dtype`.
UOp upload(std::span<const std::byte> bytes, DType dtype, Symbol device);

}  // namespace tinygrad::tensor
