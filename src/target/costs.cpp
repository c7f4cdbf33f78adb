#include "target/costs.h"

#include <algorithm>
#include <cmath>

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

const Costs& costs_of(const Target&) { return general_costs(); }

const Costs& general_costs() {
  static constexpr Costs costs;
  return costs;
}

namespace {

/// Cycles that the model counts for a step of the largest register tile of `rows` by `vectors`, where the core takes one: half a cycle for
/// each multiply-add and each vector that is loaded, and one for each broadcast.
double counted_cycles(const Target& target) {
  const double vectors = target.vector_registers >= 32 ? 3 : 2, rows = std::floor((target.vector_registers - vectors - 1) / vectors);
  return target.vector_registers ? 1 + 2 / vectors + 1 / rows : 1;
}

}  // namespace

CacheRates::CacheRates(const Target& target) {
  const CpuCore& core = target.core;
  const double cycle = 2 * double(std::max(target.vector_bits, 64)) / core.multiply_add_bits / counted_cycles(target);
  l2 = core.l2_bytes_a_cycle * cycle;
  l3 = core.l3_bytes_a_cycle * cycle;
  memory = core.memory_bytes_a_cycle * cycle;
  short_runs = core.lines_in_flight * double(general_costs().memory.line_bytes) / core.memory_cycles * cycle;
}

double independent_operations(const Target& target) {
  return target.core.multiply_add_cycles * target.core.multiply_add_bits / double(std::max(target.vector_bits, 64));
}

}  // namespace tinygrad
