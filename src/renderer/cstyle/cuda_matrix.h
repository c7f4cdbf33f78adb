#pragma once
/// Products of tensor cores in CUDA C: functions around assembly.

#include <memory>

#include "renderer/cstyle/async_products.h"

namespace tinygrad::renderer::cstyle {

/// mma.sync, for WMMAs of values.
Expr warp_product(Prelude& prelude, const WmmaArg& core, const Value& a, const Value& b, const Value& c);
/// wgmma.
std::unique_ptr<AsyncProducts> warpgroup_products(Prelude& prelude, Names& names);
/// tcgen05, with its sums in tensor memory.
std::unique_ptr<AsyncProducts> tensor_memory_products(Prelude& prelude, Names& names, const KernelInfo& info);

}  // namespace tinygrad::renderer::cstyle
