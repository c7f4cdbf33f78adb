#pragma once
#include <string>
#include <string_view>

namespace tinygrad::compiler {

/// The cubin (an ELF file for the GPU) of PTX text for a real architecture such as "sm_90a", from the disk cache where it is known. Made by
/// nvJitLink in the process or, where that is missing, by the program ptxas. Safe for several threads. Throws CompileError with the
/// assembler's log.
std::string assemble_ptx(const std::string& source, std::string_view arch);

/// Why PTX cannot be assembled; empty if it can.
std::string ptx_assembler_missing();

}  // namespace tinygrad::compiler
