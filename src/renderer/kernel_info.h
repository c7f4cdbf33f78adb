#pragma once
#include <string_view>

#include <tinygrad/kernel_info.h>

#include "uop/uop.h"

namespace tinygrad {

/// Reads a linear program (docs/architecture.md): its PARAMs, VARs, launch dimensions and cost.
KernelInfo describe_kernel(const UOp& linear, std::string_view name);

/// Whether the kernel stores to the argument that an INDEX is a place in.
bool stores_to(const KernelInfo& info, const UOp& place);

}  // namespace tinygrad
