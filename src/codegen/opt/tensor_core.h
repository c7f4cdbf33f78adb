#pragma once
#include <optional>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// The kernel with a sum of products over a range made by a tensor core of the target (see TC in apply_opts.h). The core's work-items
/// become a local axis, or a vector axis where the target has no work-groups; the elements that each holds of the result an upcast axis.
/// Those of the factors are axes that only STAGE sees, until expand_elements() writes them out. ValueError where no sum of products has the
/// core's dtypes.
UOp apply_tensor_core(const UOp& sink, const Opt& opt, const Target& target);

UOp expand_elements(const UOp& sink);

/// The axes of a sum of products that the core can make: rows and columns of the result, and what is summed over.
struct TensorCoreAxes {
  UOp m, n, k;
  UOps casts;                ///< conversions that the core's instruction includes
  bool of_arguments = true;  ///< both factors are loaded, and cast at most
  bool lie_as_read = true;   ///< operands in group memory are copied from the arguments in runs of 16 bytes
  bool shifts_a = false;     ///< a is shifted (target/tensor_cores/registers.h)
};
std::optional<TensorCoreAxes> tensor_core_axes(const UOp& sink, const TensorCore& core);

bool has_tensor_core(const UOp& sink);

/// A factor that a tensor core reads from memory of the group: an element of a STAGE, once it has one.
struct MemoryOperand {
  UOp value, element;  ///< the factor's element number `element`, a RANGE
  const TensorCore::Layout* layout = nullptr;
};
std::vector<MemoryOperand> memory_operands(const UOp& sink);

/// True for a REDUCE over products whose factors a tensor core reads from memory.
bool sums_products_of_memory(const UOp& reduce);

}  // namespace tinygrad::codegen
