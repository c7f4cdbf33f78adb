#pragma once
#include <tinygrad/kernel_info.h>

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad {

/// Bytes of group memory that a BUFFER takes, with the padding behind it.
int64_t group_bytes(const UOp& buffer);

/// Bytes of group memory that a launch must give: all that the kernel uses, or 0 if it is so little that the kernel's text declares it.
int64_t given_group_bytes(const Target& target, const KernelInfo& info);

/// Whether the kernel stores to the argument that an INDEX is of.
bool stores_to(const KernelInfo& info, const UOp& place);

}  // namespace tinygrad
