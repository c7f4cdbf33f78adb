#pragma once
/// Parts of NVIDIA's CUDA toolkit, each found at run time: in the folder of the option CUDA_PATH or, without it, where the system has them,
/// then in /usr/local/cuda.

#include <string>
#include <string_view>

#include "base/dylib.h"

namespace tinygrad::compiler {

/// The library lib{stem}.so of version 13 or 12, opened at the first use and kept. Throws CompileError saying what was tried and how to
/// install it.
const DynamicLibrary& toolkit_library(std::string_view stem);
/// The path of a program; empty if there is none.
std::string toolkit_program(std::string_view name);
/// How to get what is missing.
std::string how_to_install_toolkit();

}  // namespace tinygrad::compiler
