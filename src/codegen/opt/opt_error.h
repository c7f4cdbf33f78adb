#pragma once
#include <string_view>

#include "uop/uop.h"

namespace tinygrad::codegen {

/// Throws ValueError for an opt that the kernel or the target does not take.
[[noreturn]] void opt_error(const Opt& opt, std::string_view why);

}  // namespace tinygrad::codegen
