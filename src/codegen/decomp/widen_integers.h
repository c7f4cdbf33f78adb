#pragma once
#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Computes integers of 8 and 16 bits that the target does not have in 32 bits, cut to their width where a result may be wider. The
/// arguments of the kernel stay as they are: what is left of such a dtype are LOADs, whose value a CAST widens at once, and CASTs in front
/// of a STORE, to cut a value or to read its bits as a half. Memory of the kernel's own has elements of 32 bits.
UOp widen_integers(const UOp& sink, const Target& target);

}  // namespace tinygrad::codegen
