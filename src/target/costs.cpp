#include "target/costs.h"

#include <algorithm>

namespace tinygrad {

const OpCost& OpCosts::of(Op op) const {
  switch (op) {
    case Op::SQRT:
    case Op::RECIPROCAL:
    case Op::FDIV: return root;
    case Op::CDIV:
    case Op::CMOD:
    case Op::FLOORDIV:
    case Op::FLOORMOD: return quotient;
    case Op::EXP2:
    case Op::LOG2: return exponential;
    case Op::SIN:
    case Op::POW: return trigonometric;
    case Op::THREEFRY: return random;
    default: return simple;
  }
}

const Costs& general_costs() {
  static constexpr Costs costs;
  return costs;
}

CacheRates::CacheRates(const Target& target) {
  const CpuCore &core = target.core, kind = core.is_measured ? cpu_core(core.name.str()) : core;
  // Beside products the second cache of Zen 3 gives 19 bytes a cycle; this model counts some 2.6 cycles where they take one.
  l2 = (target.vector_bits == 256 ? 8 : 32) * core.l2_bytes_a_cycle / kind.l2_bytes_a_cycle;
  l3 = 16 * core.l3_bytes_a_cycle / kind.l3_bytes_a_cycle;
  memory = 4 * core.memory_bytes_a_cycle / kind.memory_bytes_a_cycle;
  short_runs = 2 * (core.lines_in_flight / core.memory_cycles) / (kind.lines_in_flight / kind.memory_cycles);
}

double independent_operations(const Target& target) {
  if (target.core.name.empty()) return 8;  // of a device whose cores are not in the table, two a cycle for four cycles
  return target.core.multiply_add_cycles * target.core.multiply_add_bits / double(std::max(target.vector_bits, 64));
}

}  // namespace tinygrad
