#pragma once
#include <string>

#include "kernel/kernel_info.h"
#include "target/target.h"

namespace tinygrad::renderer {

/// WGSL of a linear program: a pure function of its arguments. The module has one compute entry point, kernel_symbol(info.name), and in
/// bind group 0
///   - at binding `slot` each buffer: an array of its elements, or of 32-bit words that hold several where these are bools or integers of 8
///     or 16 bits;
///   - at binding info.buffer_count() a uniform struct of the variables, int32 each, in the order of info.variables, if there are any.
/// For each buffer there is a pipeline constant wgsl_first(slot): the element of the array that is the buffer's first.
/// Throws CompileError for dtypes that WGSL does not have and for more group memory than the target's.
std::string render_wgsl(const Target& target, const UOp& linear, const KernelInfo& info);

/// "first3"
std::string wgsl_first(int32_t slot);

}  // namespace tinygrad::renderer
