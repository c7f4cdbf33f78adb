#pragma once
#include <string>

#include "target/target.h"

namespace tinygrad::compiler {

/// The image of a C source for a Hexagon: an ELF file that runs wherever it is put, as it is, and needs nothing else. From the disk cache
/// where it is known. Throws CompileError if clang or lld is missing or refuses the source.
std::string compile_hexagon(const std::string& source, const Target& target);

/// The same of a program that runs kernels (sources.h).
std::string compile_hexagon_runner(const Target& target);

/// Assembler text of an image, for people; needs llvm-objdump. Throws CompileError.
std::string disassemble_hexagon(const std::string& image, const Target& target);

/// Why nothing can be compiled; empty if it can.
std::string hexagon_missing();

}  // namespace tinygrad::compiler
