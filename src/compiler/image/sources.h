#pragma once
/// C that goes with kernels for processors that are not the host's: nothing else is there, no C library and none of the compiler's.

namespace tinygrad::compiler {

/// memcpy, memmove and memset, which compilers may call.
const char* memory_functions();
/// What clang calls for what a Hexagon has no instructions for: quotients of integers, products, quotients and roots of doubles, rounding.
const char* hexagon_functions();

/// A program that runs kernels in a process of its own, see runtime/emulated/runner.h.
const char* runner_program();

}  // namespace tinygrad::compiler
