#pragma once
/// The numbers of the machine this process runs on: a row of cpu_cores.cpp by what CPUID says, or what was measured.

#include <optional>
#include <string>
#include <string_view>

#include "target/target.h"

namespace tinygrad {

/// What CPUID says of a processor of x86.
struct CpuId {
  std::string vendor = {};  ///< "GenuineIntel", "AuthenticAMD", ...
  unsigned family = 0, model = 0;
};
/// The microarchitecture of a processor: of models that came later, the maker's newest with vectors of these bits; of other makers,
/// `otherwise`.
std::string_view nearest_core(const CpuId& id, int vector_bits, std::string_view otherwise);

/// The numbers that the disk cache has of this machine. Those that no machine can have are taken for none.
std::optional<CpuCore> kept_core(const Target& host);

}  // namespace tinygrad
