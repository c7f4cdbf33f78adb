#pragma once
#include <tinygrad/kernel_info.h>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad {

/// Of a BUFFER that a group shares, with what is left free behind it.
int64_t group_bytes(const UOp& buffer);

/// The memory of a group that a launch must give, all that the kernel has, or 0: where it is little the text declares it.
int64_t given_group_bytes(const Target& target, const KernelInfo& info);

/// Whether the kernel stores to the argument that an INDEX is a place in.
bool stores_to(const KernelInfo& info, const UOp& place);

}  // namespace tinygrad
