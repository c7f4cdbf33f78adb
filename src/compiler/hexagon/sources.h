#pragma once
/// C for the Hexagon that goes with kernels: nothing else is there, no C library and none of the compiler's.

namespace tinygrad::compiler {

/// Functions that clang calls for what the processor has no instructions for: quotients of integers, products, quotients and roots of
/// doubles, rounding. Linked with each kernel, which keeps those that it calls.
const char* hexagon_functions();

/// A program that runs kernels in a process of its own, see runtime/dsp/runner.h.
const char* hexagon_runner();

}  // namespace tinygrad::compiler
