#pragma once
#include <string_view>

namespace tinygrad::runtime {

/// The functions that compilers call from generated code on their own account, and nothing else.
void* cpu_runtime_symbol(std::string_view name);

}  // namespace tinygrad::runtime
