#include "common/core_numbers.h"

#include <nlohmann/json.hpp>

namespace tinygrad::apps {

std::span<const CoreNumber> core_numbers() {
  static constexpr CoreNumber all[] = {
      {"multiply_add_bits", &CpuCore::multiply_add_bits, "bits of vectors whose multiply-adds start in a cycle"},
      {"multiply_add_cycles", &CpuCore::multiply_add_cycles, "until the result of one may be used"},
      {"l2_bytes_a_cycle", &CpuCore::l2_bytes_a_cycle, "that the second cache gives one core"},
      {"l3_bytes_a_cycle", &CpuCore::l3_bytes_a_cycle, "that the third cache gives one core"},
      {"memory_bytes_a_cycle", &CpuCore::memory_bytes_a_cycle, "that memory gives one core"},
      {"memory_cycles", &CpuCore::memory_cycles, "until a line from memory arrives"},
      {"lines_in_flight", &CpuCore::lines_in_flight, "that a core waits for at once"},
      {"fork_cycles", &CpuCore::fork_cycles, "to hand work to waiting threads and to await them"},
  };
  return all;
}

nlohmann::ordered_json core_json(const CpuCore& core) {
  nlohmann::ordered_json out{{"microarchitecture", core.name.str()}, {"measured", core.is_measured}};
  for (const CoreNumber& n : core_numbers()) out[n.name] = core.*n.number;
  out["l1_ways"] = core.l1_ways;
  out["l2_ways"] = core.l2_ways;
  return out;
}

}  // namespace tinygrad::apps
