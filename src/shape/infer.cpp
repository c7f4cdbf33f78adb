#include "shape/infer.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "uop/build.h"

namespace tinygrad {

namespace {

std::string dtype_names(std::span<const UOp> sources) {
  std::string out;
  for (const UOp& s : sources) out += (out.empty() ? "" : ", ") + std::string(repr(s.dtype()));
  return out;
}

[[noreturn]] void fail(Op op, std::span<const UOp> sources, std::string_view expects) {
  throw DTypeError(fmt::format("{}: got ({}), expects {}; cast first", name(op), dtype_names(sources), expects));
}

void check_same(Op op, std::span<const UOp> all, std::span<const UOp> sources) {
  for (const UOp& s : sources)
    if (s.dtype() != sources[0].dtype()) fail(op, all, "one dtype");
}

bool is_number(DType d) { return is_float(d) || is_int(d); }
bool is_bits(DType d) { return is_int(d) || is_bool(d); }

void check_kind(Op op, std::span<const UOp> sources) {
  const DType d = sources[0].dtype();
  switch (op) {
    case Op::EXP2:
    case Op::LOG2:
    case Op::SIN:
    case Op::SQRT:
    case Op::RECIPROCAL:
    case Op::LDEXP:
    case Op::FDIV:
      if (!is_float(d)) fail(op, sources, "floats");
      return;
    case Op::NEG:
    case Op::TRUNC:
    case Op::POW:
      if (!is_number(d)) fail(op, sources, "numbers");
      return;
    case Op::CDIV:
    case Op::CMOD:
    case Op::FLOORDIV:
    case Op::FLOORMOD:
    case Op::SHL:
    case Op::SHR:
      if (!is_int(d)) fail(op, sources, "integers");
      return;
    case Op::XOR:
    case Op::OR:
    case Op::AND:
      if (!is_bits(d)) fail(op, sources, "integers or bool");
      return;
    case Op::THREEFRY:
      if (d != DType::uint64) fail(op, sources, "uint64");
      return;
    default:
      if (d == DType::void_) fail(op, sources, "values");
  }
}

DType elementwise_dtype(Op op, std::span<const UOp> sources) {
  if (op == Op::WHERE) {
    if (!is_bool(sources[0].dtype())) fail(op, sources, "a bool condition");
    check_same(op, sources, sources.subspan(1));
    return sources[1].dtype();
  }
  check_kind(op, sources);
  if (op == Op::SHL || op == Op::SHR) {
    if (!is_int(sources[1].dtype())) fail(op, sources, "an integer amount");
  } else {
    check_same(op, sources, sources);
  }
  return in_group(op, Group::comparison) ? DType::bool_ : sources[0].dtype();
}

DType stored_dtype(Op op, std::span<const UOp> sources) {
  check_same(op, sources, sources.first(2));
  return op == Op::STORE ? DType::void_ : sources[0].dtype();
}

}  // namespace

DType infer_dtype(Op op, std::span<const UOp> sources) {
  if (info(op).arity >= 0 && sources.size() != size_t(info(op).arity))
    throw InternalError(fmt::format("{}: got {} sources, takes {}", name(op), sources.size(), info(op).arity));
  if (in_group(op, Group::alu)) return elementwise_dtype(op, sources);
  if (in_group(op, Group::effect)) return op == Op::STORE ? stored_dtype(op, sources) : DType::void_;
  switch (op) {
    case Op::VAR:
    case Op::BIND:
    case Op::RANGE:
    case Op::SPECIAL: return DType::index;
    case Op::TUPLE: return DType::void_;
    case Op::INDEX:
      if (is_image(sources[0])) return DType::float32;
      if (sources.size() > 2 && !is_bool(sources[2].dtype())) fail(op, sources, "a bool validity");
      if (!is_int(sources[1].dtype())) fail(op, sources, "an integer index");
      return sources[0].dtype();
    case Op::LOAD: return sources.size() > 1 ? stored_dtype(op, sources) : sources[0].dtype();
    case Op::REALIZED: return sources[0].dtype();
    case Op::STACK:
    case Op::MSTACK: check_same(op, sources, sources); return sources[0].dtype();
    case Op::CONST:
    case Op::IOTA:
    case Op::BUFFER:
    case Op::PARAM:
    case Op::CAST:
    case Op::BITCAST:
    case Op::WMMA:
    case Op::GETTUPLE: throw InternalError(fmt::format("the dtype of {} does not follow from its sources", name(op)));
    default: return sources[0].dtype();
  }
}

}  // namespace tinygrad
