#pragma once
#include <string_view>

#include <tinygrad/kernel_info.h>

#include "kernel/describe_kernel.h"
#include "uop/uop.h"

namespace tinygrad {

/// What a launch of a linear program needs (docs/ir.md): its PARAMs, VARs, launch dimensions and cost. `kernel` is the SINK that
/// it was made from: it has the name, and reads an argument only if a LOAD of it does, since partial results that the program itself has
/// put into an argument need not have been there before.
KernelInfo describe_kernel(const UOp& linear, const UOp& kernel);
/// The same for a program that was not made from a SINK: it reads each argument that it loads.
KernelInfo describe_kernel(const UOp& linear, std::string_view name);

}  // namespace tinygrad
