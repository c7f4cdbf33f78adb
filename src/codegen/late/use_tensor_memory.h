#pragma once
#include "uop/uop.h"

namespace tinygrad::codegen {

/// Residency of accumulators: private memory of a linear program becomes tiles in tensor memory, for cores that add to sums there
/// (TensorCore::tensor_memory). Such a tile begins with zeros, products alone go on with it, in place, through all loops, and it is loaded
/// once, behind them. Other products of these cores are given sums and give sums, which a renderer copies there and back. The program has
/// its WMMA_WAITs already; the private BUFFERs that are not accessed any more stay in its list.
UOp use_tensor_memory(const UOp& linear);

}  // namespace tinygrad::codegen
