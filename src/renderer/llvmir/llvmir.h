#pragma once
#include <string>

#include "kernel/kernel_info.h"
#include "target/target.h"

namespace tinygrad::renderer {

/// LLVM IR text of a linear program (docs/ir.md) for a CPU target: a pure function of its arguments. The module has one function,
/// `void NAME(ptr bufs, ptr vars, i64 chunk_begin, i64 chunk_end, ptr scratch)`, where `bufs` are pointers by slot, `vars` are int64 in the
/// order of KernelInfo::variables, the chunks are the part of the thread range to run, and `scratch` is memory of the calling thread as
/// ScratchLayout lays it out. Throws InternalError for an instruction that CPUs do not have.
std::string render_llvmir(const Target& target, const UOp& linear, const KernelInfo& info);

}  // namespace tinygrad::renderer
