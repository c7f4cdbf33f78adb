#pragma once
#include <string>

#include <tinygrad/render.h>

#include "kernel/kernel_info.h"
#include "target/target.h"

namespace tinygrad::renderer {

/// render_c() for a Hexagon, with `long long` for `long`.
std::string render_hexagon(const Target& target, const UOp& linear, const KernelInfo& info);

// Beside those, for work-groups: a kernel is one function, kernel_symbol() of its name, that takes the memory of KernelInfo::params in
// their order and then all variables, 64 bits each, in theirs.

/// CUDA C++ as NVRTC compiles it, without CUDA's headers.
std::string render_cuda(const Target& target, const UOp& linear, const KernelInfo& info);
/// HIP C++ as clang compiles it for AMD's GPUs, without HIP's headers.
std::string render_hip(const Target& target, const UOp& linear, const KernelInfo& info);
/// Metal's shading language, version 3.1. Variables are one argument, an array behind the memory.
std::string render_metal(const Target& target, const UOp& linear, const KernelInfo& info);
/// OpenCL C 1.2. Each memory is two arguments, a buffer and the element of it that the memory begins at.
std::string render_opencl(const Target& target, const UOp& linear, const KernelInfo& info);

}  // namespace tinygrad::renderer
