#include "codegen/decomp/widen_integers.h"

#include "codegen/rebuild.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

DType wide(DType d) { return is_unsigned(d) ? DType::uint32 : DType::int32; }

/// Ops on values of a dtype whose result is always one.
bool is_closed(Op op, DType d) {
  switch (op) {
    case Op::MAX:
    case Op::WHERE:
    case Op::AND:
    case Op::OR:
    case Op::XOR:
    case Op::SHR:
    case Op::CMOD:
    case Op::FLOORMOD:
    case Op::TRUNC: return true;
    case Op::CDIV:
    case Op::FLOORDIV: return is_unsigned(d);  // -128 / -1
    default: return false;
  }
}

class Widening {
 public:
  explicit Widening(const Target& target) : target_(target) {}

  UOp operator()(const UOp& u, const UOps& sources) const {
    const DType d = u.dtype();
    if (u.is(Op::STORE)) return store(u, sources);
    if (u.is(Op::BITCAST)) return read_bits(u.src(0).dtype(), sources[0], d);
    if (!is_narrow(d) || u.is(Op::PARAM)) return u.with_src(sources);
    switch (u.op()) {
      case Op::CONST: return constant(u.arg_as<ConstArg>().value.cast(wide(d)));
      case Op::INDEX:
      case Op::AFTER: return UOp(u.op(), sources[0].dtype(), sources, u.arg());
      case Op::LOAD: return load(u, sources);
      case Op::CAST: return can_lossless_cast(u.src(0).dtype(), d) ? cast(sources[0], wide(d)) : cut(sources[0], d);
      default: break;
    }
    const UOp result(u.op(), wide(d), sources, u.arg());
    return u.in(Group::alu) && !is_closed(u.op(), d) ? cut(result, d) : result;
  }

 private:
  bool is_narrow(DType d) const { return is_int(d) && d != DType::index && bitsize(d) < 32 && !target_.supports(d); }

  static UOp cut(const UOp& x, DType d) { return cast(cast(x, d), wide(d)); }

  UOp store(const UOp& u, UOps sources) const {
    const DType memory = sources[0].dtype();
    if (is_narrow(memory)) sources[1] = cast(sources[1], memory);
    return u.with_src(sources);
  }
  UOp load(const UOp& u, UOps sources) const {
    const DType memory = sources[0].dtype();
    if (!is_narrow(memory)) return UOp(Op::LOAD, memory, sources, u.arg());
    if (sources.size() > 1) sources[1] = cast(sources[1], memory);
    return cast(u.with_src(sources), wide(memory));
  }
  UOp read_bits(DType from, const UOp& x, DType to) const {
    if (is_narrow(from) && is_narrow(to)) return cut(x, to);
    const UOp bits = bitcast(is_narrow(from) ? cast(x, from) : x, to);
    return is_narrow(to) ? cast(bits, wide(to)) : bits;
  }

  const Target& target_;
};

}  // namespace

UOp widen_integers(const UOp& sink, const Target& target) {
  bool has_all = true;
  for (const DType d : {DType::int8, DType::uint8, DType::int16, DType::uint16}) has_all &= target.supports(d);
  return has_all ? sink : rebuild(sink, Widening(target));
}

}  // namespace tinygrad::codegen
