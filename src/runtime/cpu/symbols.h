#pragma once
#include <span>
#include <string_view>

namespace tinygrad::runtime {

struct RuntimeSymbol {
  std::string_view name;
  void* address;
};

/// The functions that compilers call from generated code on their own account, and nothing else.
std::span<const RuntimeSymbol> cpu_runtime_symbols();
/// One of them; null for any other name.
void* cpu_runtime_symbol(std::string_view name);

}  // namespace tinygrad::runtime
