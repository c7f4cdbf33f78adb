#pragma once
#include <string>

#include "kernel/kernel_info.h"
#include "target/target.h"

namespace tinygrad::renderer {

/// PTX of a linear program (docs/ir.md) for a GPU of NVIDIA: a pure function of its arguments. The module has one kernel of the
/// name kernel_symbol(); its parameters are the addresses of the buffers in the order of KernelInfo::params, then the variables as int64.
/// Throws InternalError for an instruction that these GPUs do not have.
std::string render_ptx(const Target& target, const UOp& linear, const KernelInfo& info);

}  // namespace tinygrad::renderer
