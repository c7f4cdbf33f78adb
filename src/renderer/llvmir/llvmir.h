#pragma once
#include <string>
#include <string_view>

#include "renderer/kernel_info.h"
#include "target/target.h"

namespace tinygrad::renderer {

/// LLVM IR text of a linear program (docs/architecture.md) for a CPU target: a pure function of its arguments. The module has one function,
/// `void NAME(ptr bufs, ptr vars, i64 chunk_begin, i64 chunk_end)`, where `bufs` are pointers by slot, `vars` are int64 in the order of
/// KernelInfo::variables and the chunks are the part of the thread range to run. Throws InternalError for an instruction that CPUs do not
/// have.
std::string render_llvmir(const Target& target, const UOp& linear, const KernelInfo& info);

/// The name of the function in the object: "kernel_" and the kernel's name, with everything but letters and digits as '_'.
std::string kernel_symbol(std::string_view kernel_name);

}  // namespace tinygrad::renderer
