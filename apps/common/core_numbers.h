#pragma once
/// The numbers of a CPU's core, as tg prints them.

#include <nlohmann/json_fwd.hpp>
#include <span>

#include <tinygrad/target.h>

namespace tinygrad::apps {

struct CoreNumber {
  const char* name;
  double CpuCore::* number;
  const char* meaning;
};

std::span<const CoreNumber> core_numbers();
/// The microarchitecture, whether it was measured, and all numbers.
nlohmann::ordered_json core_json(const CpuCore& core);

}  // namespace tinygrad::apps
