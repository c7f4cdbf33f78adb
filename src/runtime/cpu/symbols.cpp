#include "runtime/cpu/symbols.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "dtype/float_format.h"

namespace tinygrad::runtime {
namespace {

// Conversions of halves for processors without F16C, and from double, rounded once. In the calling convention a half is the low 16 bits
// of a vector register, as a float's low bits are; the rest is unspecified.
float half_in_register(double value) { return std::bit_cast<float>(static_cast<uint32_t>(encode_float(formats::float16, value))); }
float truncate_double(double value) { return half_in_register(value); }
float truncate_float(float value) { return half_in_register(static_cast<double>(value)); }
float extend_half(float half) { return static_cast<float>(decode_float(formats::float16, std::bit_cast<uint32_t>(half) & 0xffffu)); }

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::span<const RuntimeSymbol> cpu_runtime_symbols() {
  static const RuntimeSymbol symbols[] = {
      {"memcpy", address(&std::memcpy)},
      {"memmove", address(&std::memmove)},
      {"memset", address(&std::memset)},
      {"__truncdfhf2", address(&truncate_double)},
      {"__truncsfhf2", address(&truncate_float)},
      {"__extendhfsf2", address(&extend_half)},
      // Called on processors without fused multiply-add or SSE 4.1.
      {"fmaf", address(static_cast<float (*)(float, float, float)>(&std::fma))},
      {"fma", address(static_cast<double (*)(double, double, double)>(&std::fma))},
      // LLVM makes them of a comparison and a choice of halves, which processors without instructions for halves compare as floats.
      {"fmaxf", address(static_cast<float (*)(float, float)>(&std::fmax))},
      {"fminf", address(static_cast<float (*)(float, float)>(&std::fmin))},
  };
  return symbols;
}

void* cpu_runtime_symbol(std::string_view name) {
  for (const RuntimeSymbol& s : cpu_runtime_symbols())
    if (s.name == name) return s.address;
  return nullptr;
}

}  // namespace tinygrad::runtime
