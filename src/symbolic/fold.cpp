#include <array>

#include <tinygrad/errors.h>

#include "dtype/scalar_ops.h"
#include "symbolic/simplify.h"
#include "uop/build.h"

namespace tinygrad::symbolic {

namespace {

Scalar compute(Op op, const std::array<const Scalar*, 3>& v) {
  switch (op) {
    case Op::EXP2: return scalar::exp2(*v[0]);
    case Op::LOG2: return scalar::log2(*v[0]);
    case Op::SIN: return scalar::sin(*v[0]);
    case Op::SQRT: return scalar::sqrt(*v[0]);
    case Op::RECIPROCAL: return scalar::reciprocal(*v[0]);
    case Op::NEG: return scalar::neg(*v[0]);
    case Op::TRUNC: return scalar::trunc(*v[0]);
    case Op::ADD: return scalar::add(*v[0], *v[1]);
    case Op::MUL: return scalar::mul(*v[0], *v[1]);
    case Op::SUB: return scalar::sub(*v[0], *v[1]);
    case Op::FDIV: return scalar::fdiv(*v[0], *v[1]);
    case Op::CDIV: return scalar::cdiv(*v[0], *v[1]);
    case Op::CMOD: return scalar::cmod(*v[0], *v[1]);
    case Op::FLOORDIV: return scalar::floordiv(*v[0], *v[1]);
    case Op::FLOORMOD: return scalar::floormod(*v[0], *v[1]);
    case Op::MAX: return scalar::max(*v[0], *v[1]);
    case Op::CMPLT: return scalar::cmplt(*v[0], *v[1]);
    case Op::CMPNE: return scalar::cmpne(*v[0], *v[1]);
    case Op::CMPEQ: return scalar::cmpeq(*v[0], *v[1]);
    case Op::XOR: return scalar::xor_(*v[0], *v[1]);
    case Op::OR: return scalar::or_(*v[0], *v[1]);
    case Op::AND: return scalar::and_(*v[0], *v[1]);
    case Op::SHL: return scalar::shl(*v[0], *v[1]);
    case Op::SHR: return scalar::shr(*v[0], *v[1]);
    case Op::POW: return scalar::pow(*v[0], *v[1]);
    case Op::LDEXP: return scalar::ldexp(*v[0], *v[1]);
    case Op::THREEFRY: return scalar::threefry(*v[0], *v[1]);
    case Op::WHERE: return scalar::where(*v[0], *v[1], *v[2]);
    case Op::MULACC: return scalar::mulacc(*v[0], *v[1], *v[2]);
    default: throw InternalError(std::string(name(op)) + ": not an op on constants");
  }
}

/// The same over the sources of `u`, casts included.
Scalar compute(const UOp& u, const std::array<const Scalar*, 3>& v) {
  if (u.is(Op::CAST)) {
    if (u.dtype() == DType::index && v[0]->dtype() == DType::uint64 && v[0]->as_uint() >> 63) throw InternalError("beyond index constants");
    return v[0]->cast(u.dtype());
  }
  if (u.is(Op::BITCAST)) return v[0]->bitcast(u.dtype());
  return compute(u.op(), v);
}

}  // namespace

UOp fold_constants(const UOp& u) {
  if (!u.in(Group::elementwise) || u.src_count() > 3) return {};
  std::array<const Scalar*, 3> values{};
  Symbol device;
  for (size_t i = 0; i < u.src_count(); ++i) {
    if (!u.src(i).is(Op::CONST)) return {};
    const auto& c = u.src(i).arg_as<ConstArg>();
    if (!device.empty() && !c.device.empty() && c.device != device) return {};
    if (!c.device.empty()) device = c.device;
    values[i] = &c.value;
  }
  try {
    return UOp(Op::CONST, u.dtype(), {}, ConstArg{compute(u, values), device});
  } catch (const Error&) {  // what has no value here is left for the verifier, or to be computed
    return {};
  }
}

}  // namespace tinygrad::symbolic
