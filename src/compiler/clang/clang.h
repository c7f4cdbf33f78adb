#pragma once
#include <string>

#include "target/target.h"

namespace tinygrad::compiler {

/// The relocatable object (ELF) of a C source for a CPU or DSP target, from the disk cache where it is known: then clang is not started.
/// Safe for several threads, each with a process of its own. Throws CompileError if clang is missing or refuses the source.
std::string compile_c(const std::string& source, const Target& target);

/// The code object (a linked ELF file) of a HIP source for an AMD GPU, likewise. Needs the linker lld beside clang.
std::string compile_hip(const std::string& source, const Target& target);

/// The compiler of the option CLANG_PATH, or the first clang in PATH of a version that will do; empty if there is none.
std::string find_clang();
/// Why clang cannot be started; empty if it can.
std::string clang_missing();

}  // namespace tinygrad::compiler
