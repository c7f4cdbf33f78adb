#pragma once
/// Linear programs as text: pure functions of their arguments.

#include <string>

#include <tinygrad/export.h>
#include <tinygrad/kernel_info.h>
#include <tinygrad/target.h>

namespace tinygrad::renderer {

/// C of a linear program for a CPU target, in clang's dialect with its vectors. It exports one function, named kernel_symbol():
/// `void NAME(void* const* buffers, const long* variables, long begin, long end, void* scratch)`. A launch calls it for the chunks from 0
/// to LaunchDims::chunks, at once or in pieces on several threads, each with KernelInfo::scratch_bytes of its own, aligned to 64 bytes.
/// Throws InternalError for an instruction that CPUs do not have.
TINYGRAD_EXPORT std::string render_c(const Target& target, const UOp& linear, const KernelInfo& info);

}  // namespace tinygrad::renderer
