#include "codegen/decomp/long_ops.h"

#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

UOp u64(uint64_t value) { return constant(Scalar::from_uint(value, DType::uint64)); }
UOp num(DType d, double value) { return constant(d, value); }

// Integers are taken apart into sign and magnitude; that of the least number is one in uint64.

UOp is_negative(const UOp& x) { return is_unsigned(x.dtype()) ? bool_const(false) : x < constant(x.dtype(), 0); }
UOp negated_where(const UOp& negative, const UOp& x) { return where(negative, is_float(x.dtype()) ? -x : constant(x.dtype(), 0) - x, x); }
UOp magnitude(const UOp& x) {
  const UOp bits = bitcast(x, DType::uint64);
  return is_unsigned(x.dtype()) ? bits : negated_where(is_negative(x), bits);
}

UOp low_word(const UOp& x) { return cast(x, DType::uint32); }
UOp high_word(const UOp& x) { return cast(x >> u64(32), DType::uint32); }

/// The sum of the words as floats: rounded once in float64, up to three times in float32.
UOp words_to_float(const UOp& x, DType d) { return cast(high_word(x), d) * num(d, 0x1p32) + cast(low_word(x), d); }

/// A float from 0 to below 2^64, without its fraction. All is exact.
UOp float_to_words(const UOp& x) {
  const DType d = x.dtype();
  const UOp high = cast(x * num(d, 0x1p-32), DType::uint32), low = cast(x - cast(high, d) * num(d, 0x1p32), DType::uint32);
  return (cast(high, DType::uint64) << u64(32)) | cast(low, DType::uint64);
}

/// The sum of float32s high and low, rounded to odd; high is 0 or at least low.
UOp sum_to_odd(const UOp& high, const UOp& low) {
  const UOp zero = num(DType::float32, 0), sum = high + low, error = low - (sum - high);  // exact
  const UOp bits = bitcast(sum, DType::uint32), towards_zero = bits - cast(error < zero, DType::uint32);
  return bitcast(where(ne(error, zero), towards_zero | constant(DType::uint32, 1), bits), DType::float32);
}

UOp unsigned_quotient(const UOp& x, const UOp& divisor, const Target& target) {
  // Roundings are off by 2^-24 each, a division on a GPU by 2.5 * 2^-23: together by less than 2^-20. So an estimate that is made smaller
  // by as much is never too large, and leaves a rest of at most 2^-19 rest + d. Four of them leave at most 2^-12 + (1 + 2^-18) d: less than
  // 2 d.
  const DType f = DType::float32;
  const UOp is_zero = eq(divisor, u64(0)), d = where(is_zero, u64(1), divisor);
  const UOp scale = num(f, 1 - 0x1p-20), divided = words_to_float(d, f);
  const UOp factor = target.supports(Op::FDIV) ? alu(Op::FDIV, {scale, divided}) : scale * alu(Op::RECIPROCAL, {divided});
  UOp quotient = u64(0), rest = x;
  for (int i = 0; i < 4; ++i) {
    const UOp part = float_to_words(words_to_float(rest, f) * factor);
    quotient = quotient + part;
    rest = rest - part * d;
  }
  return where(is_zero, u64(0), where(rest < d, quotient, quotient + u64(1)));
}

}  // namespace

bool is_long(DType d) { return d == DType::int64 || d == DType::uint64; }

UOp long_to_float32(const UOp& x, RoundTo rounding) {
  const DType f = DType::float32;
  // Two floats of 24 bits hold a magnitude below 2^48. Of a larger one the 16 bits below them only say whether there is more, far from
  // where the sum is rounded.
  const UOp m = magnitude(x), small = m < u64(uint64_t{1} << 48);
  const UOp shortened = (m >> u64(16)) | where(eq(m & u64(0xffff), u64(0)), u64(0), u64(1)), kept = where(small, m, shortened);
  const UOp high = cast(low_word(kept >> u64(24)), f) * num(f, 0x1p24), low = cast(low_word(kept & u64(0xffffff)), f);
  const UOp sum = rounding == RoundTo::odd ? sum_to_odd(high, low) : high + low;
  return negated_where(is_negative(x), where(small, sum, sum * num(f, 0x1p16)));
}

UOp long_to_float64(const UOp& x) { return negated_where(is_negative(x), words_to_float(magnitude(x), DType::float64)); }

UOp float_to_long(const UOp& given, DType to) {
  const UOp x = bitsize(given.dtype()) < 32 ? cast(given, DType::float32) : given;
  const DType f = x.dtype();
  const UOp negative = x < num(f, 0), size = negated_where(negative, x);
  const UOp limit = to == DType::uint64 ? where(negative, num(f, 0x1p63), num(f, 0x1p64)) : num(f, 0x1p63);
  const UOp inside = size < limit, bits = float_to_words(where(inside, size, num(f, 0)));
  return bitcast(where(inside, negated_where(negative, bits), u64(uint64_t{1} << 63)), to);
}

UOp long_quotient(const UOp& x, const UOp& divisor, const Target& target) {
  const UOp quotient = unsigned_quotient(magnitude(x), magnitude(divisor), target);
  return is_unsigned(x.dtype()) ? quotient : bitcast(negated_where(ne(is_negative(x), is_negative(divisor)), quotient), x.dtype());
}

}  // namespace tinygrad::codegen
