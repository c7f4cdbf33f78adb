#include "symbolic/known_divisors.h"

#include <algorithm>
#include <bit>

#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::symbolic {

int KnownDivisors::power_of_two(const UOp& root) {
  if (const int* known = power_.find(root)) return *known;
  held_.push_back(root);
  for (const UOp& u : toposort_where(std::span(&root, 1), [&](const UOp& v) { return !power_.contains(v); }))
    if (!power_.contains(u)) power_[u] = compute(u);
  return power_[root];
}

int KnownDivisors::compute(const UOp& u) const {
  if (!is_int(u.dtype()) && u.dtype() != DType::index) return 0;
  const auto of = [&](size_t i) { return *power_.find(u.src(i)); };
  const auto number = [&](size_t i) -> uint64_t {
    const Scalar* c = const_value(u.src(i));
    return c ? uint64_t(c->as_int()) : 0;
  };
  switch (u.op()) {
    case Op::CONST: {
      const auto value = uint64_t(u.arg_as<ConstArg>().value.as_int());
      return value == 0 ? most_power : std::countr_zero(value);
    }
    case Op::ADD:
    case Op::SUB:
    case Op::OR:
    case Op::XOR:
    case Op::MAX: return std::min(of(0), of(1));
    case Op::AND: return std::max(of(0), of(1));
    case Op::MUL: return std::min(of(0) + of(1), most_power);
    case Op::MULACC: return std::min(of(0) + of(1), of(2));
    case Op::SHL: return number(1) < 64 ? std::min(of(0) + int(number(1)), most_power) : of(0);
    case Op::NEG: return of(0);
    case Op::WHERE: return std::min(of(1), of(2));
    case Op::CAST: return is_int(u.src(0).dtype()) || u.src(0).dtype() == DType::index ? of(0) : 0;
    case Op::FLOORMOD:
    case Op::CMOD: return std::min(of(0), of(1));
    case Op::SHR: return number(1) < 64 ? std::max(of(0) - int(number(1)), 0) : 0;
    case Op::FLOORDIV:
    case Op::CDIV: return std::has_single_bit(number(1)) ? std::max(of(0) - std::countr_zero(number(1)), 0) : 0;
    default: return 0;
  }
}

}  // namespace tinygrad::symbolic
