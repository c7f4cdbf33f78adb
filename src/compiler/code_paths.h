#pragma once
#include <tinygrad/code_path.h>

namespace tinygrad::compiler {

/// The library's code paths: every language that kernels are printed in.
extern const CodePath llvm_path, clang_path, hexagon_path, cuda_path, ptx_path, hip_path, metal_path, opencl_path, wgsl_path;

/// The same, by name, without their compilers: for text alone.
std::span<const CodePath> text_paths();

}  // namespace tinygrad::compiler
