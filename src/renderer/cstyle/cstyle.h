#pragma once
#include <string>

#include "renderer/kernel_info.h"
#include "target/target.h"

namespace tinygrad::renderer {

/// C of a linear program (docs/architecture.md) for a CPU target, in clang's dialect with its vectors: a pure function of its arguments.
/// It exports one function with the calling convention of render_llvmir():
/// `void NAME(void* const* bufs, const long* vars, long begin, long end, void* scratch)`. Throws InternalError for an instruction that CPUs
/// do not have.
std::string render_c(const Target& target, const UOp& linear, const KernelInfo& info);

}  // namespace tinygrad::renderer
