#pragma once
/// Values that are memory: BUFFERs seen through movement ops.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/buffer.h"
#include "shape/shape.h"
#include "shape/sharding.h"
#include "tensor/origin.h"
#include "uop/uop.h"

namespace tinygrad::tensor {

/// What a view shows elements of: the BUFFER or AFTER under a chain of ops that keep them as they are (movement ops but PAD, BITCAST,
/// DETACH, TENSORs that are views, REALIZED), or the value that would be in memory there; the node itself if it is no view.
const UOp& base_of_view(const UOp& node);
/// The state of memory that a view shows: the BUFFER, MSTACK or AFTER; null for a value that is computed.
UOp state_of_view(const UOp& node);
/// True where writes to the node are writes to what it is made of.
bool is_view(const UOp& node);

/// The state after a store, which is another one than after the same store at another time.
UOp state_after(const UOp& before, const UOp& store);
/// What a state is now that its stores have run; null where they have not. Under the lock of the states, as is the other one, which says
/// so.
UOp state_now(const UOp& state);
void set_state_now(const UOp& state, const UOp& now);

/// The BUFFER or MSTACK of a state, whatever is known of its history.
UOp buffer_of_state(const UOp& state);

/// TENSOR(node): what a tensor is that gets a new value. Without `is_view`, a value of its own even where the node is a view.
UOp tensor_node(const UOp& node, uint64_t id, bool is_view, const ValueOrigin& origin);
/// The same tensor as a view of `memory`.
UOp tensor_view(const UOp& tensor, const UOp& memory);

/// True for a view that no gradient goes through.
bool is_detached_view(const UOp& view);

/// The movement ops and BITCASTs of a view alone.
UOp plain_view(const UOp& view);
/// The view with its base replaced, and with the tensors in it renamed.
UOp view_of(const UOp& view, const UOp& base, const std::function<TensorArg(const TensorArg&)>& renamed = {});
/// STORE of a value into the memory that a view shows. Through a DETACH no gradient goes to it.
UOp store_through(const UOp& view, const UOp& value);

/// True where two elements of a view may be one place in memory.
bool overlaps_itself(const UOp& view);

/// Whether a state is that of memory in which nothing waits for a store.
inline bool is_plain_memory(const UOp& state) { return state.is(Op::BUFFER) || state.is(Op::MSTACK); }

/// The BUFFERs of memory.
inline std::span<const UOp> parts_of(const UOp& memory) { return memory.is(Op::MSTACK) ? memory.src() : std::span(&memory, 1); }

/// A BUFFER that is all elements in row-major order, reshaped or not, in its first state; null otherwise.
UOp whole_buffer(const UOp& node);
/// The same of memory on several devices, too: the MSTACK of which the node is all elements.
UOp whole_memory(const UOp& node);

/// Where a value is, or would be in memory: its devices, by default the default one, and how it is divided among them. Gathered axes are
/// those of memory, and of what is going to be such memory; what is computed of it has none.
class Placements {
 public:
  ShardingArg of(const UOp& value);

 private:
  std::vector<UOp> roots_;
  Shardings shardings_;
};

/// Fresh memory for a value of this shape on a device, as a node of that shape. Sizes not known before launch get room for their bounds. Of
/// a weak value it is weak too.
UOp make_memory(const Shape& shape, DType dtype, const ShardingArg& where, bool weak = false);
inline UOp make_memory(const Shape& shape, DType dtype, Symbol device, bool weak = false) {
  return make_memory(shape, dtype, ShardingArg{device, {}}, weak);
}

/// The value in memory that nothing else shares, into which it is stored when it is needed. Nodes that are equal are one node and get one
/// memory, so that CONTIGUOUS alone would not keep two copies of a value apart.
UOp copied(const UOp& value);

/// copied() of what a view would show, as the same tensor.
UOp base_in_memory(const UOp& base);

/// Fresh memory with these bytes, as a vector of `dtype`.
UOp upload(std::span<const std::byte> bytes, DType dtype, Symbol device);

}  // namespace tinygrad::tensor
