#include "codegen/decomp/divide.h"

#include <bit>

#include "symbolic/bounds.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

__extension__ using Wide = unsigned __int128;

DType unsigned_of(DType d) {
  switch (bitsize(d)) {
    case 8: return DType::uint8;
    case 16: return DType::uint16;
    case 32: return DType::uint32;
    default: return DType::uint64;
  }
}

UOp number(uint64_t value, DType d) { return constant(Scalar::from_uint(value, d)); }

UOp high_word(const UOp& a, const UOp& b, const Target& target) {
  const DType d = a.dtype(), wide = bitsize(d) < 32 ? DType::uint32 : DType::uint64;
  if (bitsize(d) == 64 || !target.supports(wide)) return high_by_halves(a, b);
  return cast((cast(a, wide) * cast(b, wide)) >> number(uint64_t(bitsize(d)), wide), d);
}

UOp unsigned_quotient(const UOp& x, uint64_t divisor, const Target& target) {
  const DType d = x.dtype();
  const int width = bitsize(d);
  if (divisor == 1) return x;
  const int log = int(std::bit_width(divisor - 1));  // rounded up
  if (std::has_single_bit(divisor)) return x >> number(uint64_t(log), d);
  const Wide one = 1;
  const auto factor = uint64_t((one << width) * ((one << log) - divisor) / divisor + 1);
  const UOp high = high_word(number(factor, d), x, target);
  return (high + ((x - high) >> number(1, d))) >> number(uint64_t(log - 1), d);
}

}  // namespace

UOp high_by_halves(const UOp& a, const UOp& b) {
  const DType d = a.dtype();
  const int half = bitsize(d) / 2;
  const UOp by = number(uint64_t(half), d), mask = number((uint64_t{1} << half) - 1, d);
  const UOp a0 = a & mask, a1 = a >> by, b0 = b & mask, b1 = b >> by;
  const UOp low = a0 * b0, first = a1 * b0 + (low >> by), second = a0 * b1 + (first & mask);
  return a1 * b1 + (first >> by) + (second >> by);
}

std::optional<Reciprocal> reciprocal_of(int64_t divisor, int64_t most, int64_t limit) {
  // With factor = (2^shift + e) / divisor, x * factor / 2^shift is x / divisor plus x * e / (divisor * 2^shift): too small to reach the
  // next integer while x * e < 2^shift.
  for (int shift = 0; shift < 63; ++shift) {
    const Wide power = Wide{1} << shift, factor = (power + Wide(divisor) - 1) / Wide(divisor), e = factor * Wide(divisor) - power;
    if (factor * Wide(most) > Wide(limit)) return std::nullopt;
    if (e * Wide(most) < power) return Reciprocal{int64_t(factor), shift};
  }
  return std::nullopt;
}

UOp short_quotient(const UOp& x, const UOp& divisor) {
  const Scalar* c = const_value(divisor);
  const DType d = x.dtype();
  if (!c || c->as_int() <= 0 || bitsize(d) < 32) return {};
  const symbolic::Bounds b = symbolic::bounds(x);
  if (b.min < 0 || (is_unsigned(d) && b.max < 0)) return {};
  const auto r = reciprocal_of(c->as_int(), b.max, max_value(bitsize(d) == 32 ? DType::int32 : DType::int64).as_int());
  if (!r) return {};
  const UOp product = r->factor == 1 ? x : x * constant(d, r->factor);
  return r->shift == 0 ? product : product >> constant(d, r->shift);
}

UOp quotient_by_constant(const UOp& x, const UOp& divisor, const Target& target) {
  const Scalar* c = const_value(divisor);
  const DType d = x.dtype(), u = unsigned_of(d);
  if (!c) return {};
  if (c->is_zero()) return constant(d, 0);
  if (is_unsigned(d)) return unsigned_quotient(x, c->as_uint(), target);
  // Of the magnitudes; that of the least number is one in the unsigned type.
  const UOp is_negative = x < constant(d, 0), bits = bitcast(x, u);
  const UOp magnitude = where(is_negative, number(0, u) - bits, bits);
  const auto positive = c->as_int() < 0 ? 0 - uint64_t(c->as_int()) : uint64_t(c->as_int());
  const UOp quotient = unsigned_quotient(magnitude, positive, target);
  const UOp negated = number(0, u) - quotient;
  return bitcast(c->as_int() < 0 ? where(is_negative, quotient, negated) : where(is_negative, negated, quotient), d);
}

}  // namespace tinygrad::codegen
