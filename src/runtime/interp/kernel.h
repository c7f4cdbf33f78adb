#pragma once
#include <memory>

#include <tinygrad/device.h>

namespace tinygrad::runtime::interp {

/// A kernel that interprets `linear`; buffer handles are host pointers. Throws InternalError for a program that does not parse.
std::unique_ptr<Kernel> make_kernel(const KernelInfo& info, const UOp& linear);

}  // namespace tinygrad::runtime::interp
