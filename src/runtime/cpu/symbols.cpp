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
float half_in_register(double value) { return std::bit_cast<float>(static_cast<uint32_t>(encode_float<formats::float16>(value))); }
float truncate_double(double value) { return half_in_register(value); }
float truncate_float(float value) { return half_in_register(static_cast<double>(value)); }
float extend_half(float half) { return static_cast<float>(decode_float<formats::float16>(std::bit_cast<uint32_t>(half) & 0xffffu)); }

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void* cpu_runtime_symbol(std::string_view name) {
  if (name == "memcpy") return address(&std::memcpy);
  if (name == "memmove") return address(&std::memmove);
  if (name == "memset") return address(&std::memset);
  if (name == "__truncdfhf2") return address(&truncate_double);
  if (name == "__truncsfhf2") return address(&truncate_float);
  if (name == "__extendhfsf2") return address(&extend_half);
  // Without fused multiply-add or SSE 4.1.
  if (name == "fmaf") return address(static_cast<float (*)(float, float, float)>(&std::fma));
  if (name == "fma") return address(static_cast<double (*)(double, double, double)>(&std::fma));
  // LLVM makes them of a comparison and a choice of halves, which processors without instructions for halves compare as floats.
  if (name == "fmaxf") return address(static_cast<float (*)(float, float)>(&std::fmax));
  if (name == "fminf") return address(static_cast<float (*)(float, float)>(&std::fmin));
  return nullptr;
}

}  // namespace tinygrad::runtime
