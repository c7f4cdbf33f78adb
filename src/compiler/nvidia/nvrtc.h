#pragma once
#include <string>
#include <string_view>

namespace tinygrad::compiler {

/// The cubin of a CUDA C source for a real architecture such as "sm_90a", from the disk cache where it is known. Made by NVRTC in the
/// process. Safe for several threads. Throws CompileError with the compiler's log.
std::string compile_cuda(const std::string& source, std::string_view arch);

/// Why CUDA C cannot be compiled; empty if it can.
std::string nvrtc_missing();

}  // namespace tinygrad::compiler
