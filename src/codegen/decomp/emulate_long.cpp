#include "codegen/decomp/emulate_long.h"

#include <cstdint>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "codegen/decomp/divide.h"
#include "codegen/decomp/long_ops.h"
#include "codegen/rebuild.h"
#include "symbolic/bounds.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

/// A value of 64 bits, or the two places where its words are.
struct Words {
  UOp low, high;
};

UOp u32(uint64_t value) { return constant(Scalar::from_uint(value, DType::uint32)); }
UOp as_unsigned(const UOp& x) { return bitcast(x, DType::uint32); }
UOp as_signed(const UOp& x) { return bitcast(x, DType::int32); }
UOp bit(const UOp& condition) { return cast(condition, DType::uint32); }

Words add(const Words& a, const Words& b) {
  const UOp low = a.low + b.low;
  return {low, a.high + b.high + bit(low < a.low)};
}

Words subtract(const Words& a, const Words& b) { return {a.low - b.low, a.high - b.high - bit(a.low < b.low)}; }

Words multiply(const Words& a, const Words& b) { return {a.low * b.low, high_by_halves(a.low, b.low) + a.low * b.high + a.high * b.low}; }

Words by_word(Op op, const Words& a, const Words& b) { return {alu(op, {a.low, b.low}), alu(op, {a.high, b.high})}; }

Words select(const UOp& condition, const Words& a, const Words& b) {
  return {where(condition, a.low, b.low), where(condition, a.high, b.high)};
}

// A word shifted by 32 or more is 0, and an amount below zero is a large one: so of the parts that could make up a word, those that do not
// are 0.

Words shift_left(const Words& a, const UOp& by) {
  return {a.low << by, (a.high << by) | (a.low >> (u32(32) - by)) | (a.low << (by - u32(32)))};
}

Words shift_right(const Words& a, const UOp& by) {
  return {(a.low >> by) | (a.high << (u32(32) - by)) | (a.high >> (by - u32(32))), a.high >> by};
}

/// The upper word leaves copies of the sign.
Words shift_right_signed(const Words& a, const UOp& by) {
  const UOp high = as_signed(a.high), within = (a.low >> by) | (a.high << (u32(32) - by));
  return {where(by < u32(32), within, as_unsigned(high >> (by - u32(32)))), as_unsigned(high >> by)};
}

UOp less(const Words& a, const Words& b, bool is_signed) {
  const UOp high = is_signed ? as_signed(a.high) < as_signed(b.high) : a.high < b.high;
  return high | (eq(a.high, b.high) & (a.low < b.low));
}

/// The number whose sign a word of 32 bits has.
Words extended(const UOp& x) {
  if (is_unsigned(x.dtype()) || is_bool(x.dtype())) return {cast(x, DType::uint32), u32(0)};
  const UOp word = cast(x, DType::int32);
  return {as_unsigned(word), as_unsigned(word >> constant(DType::int32, 31))};
}

class Emulation {
 public:
  explicit Emulation(const UOp& sink) {
    if (const auto* kernel = std::get_if<KernelArg>(&sink.arg())) kernel_ = kernel->name;
  }

  /// For a 64-bit value the low word; words_ has both.
  UOp operator()(const UOp& u, const UOps& sources) {
    if (u.in(Group::memory)) return memory(u, sources);
    if (u.is(Op::STORE) && is_long(u.src(1).dtype())) return stored(u, sources);
    if (u.is(Op::AFTER) && is_long(u.dtype())) return UOp(Op::AFTER, DType::uint32, sources);
    if (is_long(u.dtype())) return (words_[u] = split(u, sources)).low;
    for (const UOp& s : u.src())
      if (words_.find(s) && !u.is(Op::RANGE) && !u.is(Op::SPECIAL)) return joined(u, sources);
    return u.with_src(sources);
  }

 private:
  const Words& words(const UOp& u) const {
    if (const Words* w = words_.find(u)) return *w;
    throw InternalError(fmt::format("emulate long: {} is no value of 64 bits", print_expr(u)));
  }

  UOp memory(const UOp& u, const UOps& sources) const {
    const int count = is_long(u.dtype()) ? 2 : 1;
    const int64_t size = u.is(Op::BUFFER) ? u.arg_as<BufferArg>().size : symbolic::bounds(sources[0]).max;
    if (size > INT32_MAX / count)
      throw CompileError(
          fmt::format("kernel {}: a buffer has up to {} words of 32 bits, but the target has no 64-bit integers to index more than {}; "
                      "split the buffer",
                      kernel_.str(), size * count, INT32_MAX));
    if (count == 1) return u.with_src(sources);
    if (u.is(Op::PARAM)) return UOp(Op::PARAM, DType::uint32, {constant(sources[0].dtype(), size * 2)}, u.arg());
    BufferArg arg = u.arg_as<BufferArg>();
    arg.size *= 2;
    return UOp(Op::BUFFER, DType::uint32, {}, arg);
  }

  static UOp memory_of(const UOp& place) {
    const UOp* m = &place.src(0);
    while (m->is(Op::AFTER)) m = &m->src(0);
    return *m;
  }

  /// An index takes part as its low word: that of a place that exists is all of it.
  UOp index_word(const UOp& u, const UOp& rebuilt) const { return is_long(u.dtype()) ? as_signed(words(u).low) : rebuilt; }

  /// The words of a kernel's own memory stand apart, so that what were neighbours stay such.
  Words places(const UOp& u, const UOps& sources) const {
    const UOp at = index_word(u.src(1), sources[1]), memory = memory_of(u);
    const auto place = [&](const UOp& i) {
      UOps s = sources;
      s[1] = i;
      return UOp(Op::INDEX, DType::uint32, s, u.arg());
    };
    if (memory.is(Op::BUFFER)) return {place(at), place(at + memory.arg_as<BufferArg>().size)};
    return {place(at * 2), place(at * 2 + 1)};
  }

  Words loaded(const UOp& u, const UOps& sources) const {
    const Words at = words(u.src(0));
    if (sources.size() == 1) return {load(at.low), load(at.high)};
    const Words otherwise = words(u.src(1));
    const auto word = [&](const UOp& place, const UOp& alternative) {
      UOps s = sources;
      s[0] = place;
      s[1] = alternative;
      return UOp(Op::LOAD, DType::uint32, s, u.arg());
    };
    return {word(at.low, otherwise.low), word(at.high, otherwise.high)};
  }

  UOp stored(const UOp& u, const UOps& sources) const {
    const Words at = words(u.src(0)), value = words(u.src(1));
    const auto word = [&](const UOp& place, const UOp& x) {
      UOps s = sources;
      s[0] = place;
      s[1] = x;
      return u.with_src(s);
    };
    return group(UOps{word(at.low, value.low), word(at.high, value.high)});
  }

  /// By how much an integer of 32 bits or two words is to be shifted.
  UOp amount(const UOp& u, const UOp& rebuilt) const {
    if (!is_long(u.dtype())) return cast(rebuilt, DType::uint32);
    const Words& w = words(u);
    return where(eq(w.high, u32(0)), w.low, u32(64));
  }

  Words split(const UOp& u, const UOps& sources) const {
    const auto in = [&](size_t i) -> const Words& { return words(u.src(i)); };
    switch (u.op()) {
      case Op::CONST: {
        const uint64_t bits = u.arg_as<ConstArg>().value.as_uint();
        return {u32(bits & 0xffffffff), u32(bits >> 32)};
      }
      case Op::INDEX: return places(u, sources);
      case Op::LOAD: return loaded(u, sources);
      case Op::ADD: return add(in(0), in(1));
      case Op::SUB: return subtract(in(0), in(1));
      case Op::MUL: return multiply(in(0), in(1));
      case Op::AND:
      case Op::OR:
      case Op::XOR: return by_word(u.op(), in(0), in(1));
      case Op::SHL: return shift_left(in(0), amount(u.src(1), sources[1]));
      case Op::SHR: return (is_unsigned(u.dtype()) ? shift_right : shift_right_signed)(in(0), amount(u.src(1), sources[1]));
      case Op::WHERE: return select(sources[0], in(1), in(2));
      case Op::BITCAST:
      case Op::CAST:
        if (is_long(u.src(0).dtype())) return in(0);
        if (u.is(Op::BITCAST)) return halves(bitcast(sources[0], DType::uint64));
        if (!is_float(u.src(0).dtype())) return extended(sources[0]);
        [[fallthrough]];
      default:
        throw InternalError(fmt::format("emulate long: {} of {} was to be decomposed: {}", name(u.op()), repr(u.dtype()), print_expr(u)));
    }
  }

  static Words halves(const UOp& x) { return {cast(x, DType::uint32), cast(x >> constant(DType::uint64, 32), DType::uint32)}; }

  /// What is no 64-bit value itself but takes one.
  UOp joined(const UOp& u, const UOps& sources) const {
    const auto in = [&](size_t i) -> const Words& { return words(u.src(i)); };
    const DType d = u.dtype();
    switch (u.op()) {
      case Op::CMPLT: return less(in(0), in(1), is_signed(u.src(0).dtype()));
      case Op::CMPNE: return ne(in(0).low, in(1).low) | ne(in(0).high, in(1).high);
      case Op::CMPEQ: return eq(in(0).low, in(1).low) & eq(in(0).high, in(1).high);
      case Op::SHL:
      case Op::SHR: {
        const UOp by = amount(u.src(1), sources[1]);
        return alu(u.op(), {sources[0], cast(where(by < u32(64), by, u32(64)), d)});
      }
      case Op::INDEX: {
        UOps s = sources;
        s[1] = index_word(u.src(1), sources[1]);
        return u.with_src(s);
      }
      case Op::CAST:
        if (is_bool(d)) return ne(in(0).low | in(0).high, u32(0));
        if (is_int(d)) return cast(in(0).low, d);
        break;
      case Op::BITCAST:
        return bitcast((cast(in(0).high, DType::uint64) << constant(DType::uint64, 32)) | cast(in(0).low, DType::uint64), d);
      default: break;
    }
    throw InternalError(fmt::format("emulate long: {} of 64-bit values was to be decomposed: {}", name(u.op()), print_expr(u)));
  }

  Symbol kernel_;
  NodeMap<Words> words_;
};

}  // namespace

UOp emulate_long(const UOp& sink, const Target& target) {
  if (target.has_int64()) return sink;
  Emulation emulation(sink);
  return rebuild(sink, [&](const UOp& u, const UOps& sources) { return emulation(u, sources); });
}

}  // namespace tinygrad::codegen
