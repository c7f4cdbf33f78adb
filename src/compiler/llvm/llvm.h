#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tinygrad::compiler {

/// The relocatable object (ELF) of an LLVM IR module for a CPU architecture ("x86-64-v3", "neoverse-n1"), from the disk cache where it is
/// known: then LLVM is not opened. Safe for several threads, which compile in parallel. Throws CompileError if LLVM is missing or refuses
/// the source.
std::string compile_llvmir(const std::string& source, std::string_view arch);

/// Assembler text of the code of such an object, for people.
std::string disassemble_llvm(const std::string& object, std::string_view arch);

/// True once LLVM was opened in this process.
bool llvm_is_open();
/// Why LLVM cannot be opened; empty if it can. Opens it.
std::string llvm_missing();

}  // namespace tinygrad::compiler
