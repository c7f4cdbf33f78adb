#include "target/costs.h"

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

const Costs& costs_of(const Target& target) {
  // Beside products the second cache of Zen 3 gives 19 bytes a cycle; this model counts some 2.6 cycles where they take one.
  static constexpr Costs narrow{.ops = {}, .memory = {.l2_bytes_a_cycle = 8}, .instructions = {}};
  return !target.has_groups && target.vector_bits == 256 ? narrow : general_costs();
}

const Costs& general_costs() {
  static constexpr Costs costs;
  return costs;
}

}  // namespace tinygrad
