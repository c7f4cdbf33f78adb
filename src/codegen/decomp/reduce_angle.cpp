#include "codegen/decomp/reduce_angle.h"

#include "codegen/decomp/float_layout.h"

namespace tinygrad::codegen {

namespace {

/// The bits of 2/pi behind the binary point.
constexpr uint32_t two_over_pi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
                                    0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
                                    0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
                                    0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
                                    0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};

UOp word(uint64_t value, DType d) { return constant(Scalar::from_uint(value, d)); }
UOp word64(uint64_t value) { return word(value, DType::uint64); }

/// Word `i` of 2/pi after one word of zeros, 32 or 64 bits each.
uint64_t table_word(size_t i, DType d) {
  if (i == 0) return 0;
  if (d == DType::uint32) return two_over_pi[i - 1];
  return uint64_t{two_over_pi[2 * i - 2]} << 32 | two_over_pi[2 * i - 1];
}

/// Words first .. first + 3 of the table, where `first` is known when the kernel runs and at most `last`.
std::array<UOp, 4> table_words(const UOp& first, size_t last, DType d) {
  std::array<UOp, 4> out;
  for (size_t k = 0; k < 4; ++k) {
    out[k] = word(table_word(k, d), d);
    for (size_t i = 1; i <= last; ++i)
      out[k] = where(eq(first, constant(first.dtype(), int64_t(i))), word(table_word(i + k, d), d), out[k]);
  }
  return out;
}

/// The three words that start `shift` bits into four.
std::array<UOp, 3> shifted_words(const std::array<UOp, 4>& w, const UOp& shift, int width) {
  const DType d = w[0].dtype();
  std::array<UOp, 3> out;
  for (size_t k = 0; k < 3; ++k) out[k] = (w[k] << shift) | (w[k + 1] >> (word(uint64_t(width), d) - shift));  // by the whole width: 0
  return out;
}

UOp high_word(const UOp& a, const UOp& b) {
  const UOp mask = word64(0xffffffff), s = word64(32);
  const UOp a0 = a & mask, a1 = a >> s, b0 = b & mask, b1 = b >> s;
  const UOp cross = a1 * b0 + ((a0 * b0) >> s), middle = a0 * b1 + (cross & mask);
  return a1 * b1 + (cross >> s) + (middle >> s);
}

/// A quarter turn is 2^62 of `turns`, with `below` 2^-64 of one step of it.
Angle from_fixed_point(const UOp& turns, const UOp& below, const FloatLayout& l) {
  const UOp quadrant = (turns + word64(uint64_t{1} << 61)) >> word64(62);
  const UOp rest = bitcast(turns - (quadrant << word64(62)), DType::int64);
  UOp value = cast(rest, l.dtype);
  if (below) value = value + cast(below, l.dtype) * l.num(0x1p-64);
  return {cast(quadrant, l.signed_bits), value * l.num(1.5707963267948966 * 0x1p-62)};
}

// x = M 2^E with an integer M. Bits of 2/pi that make whole turns with M 2^E are left out by starting at bit E - 2 of them; then
// x 2/pi modulo 4 is 4 times the fraction of M times what follows.

Angle reduce_float32(const UOp& x, const FloatLayout& l) {
  const UOp bits = bitcast(x, DType::uint32), m32 = (bits & word(0x7fffff, DType::uint32)) | word(0x800000, DType::uint32);
  const UOp start = (bits >> word(23, DType::uint32)) - word(152 - 32, DType::uint32);
  const auto w = shifted_words(table_words(start >> word(5, DType::uint32), 4, DType::uint32), start & word(31, DType::uint32), 32);
  const UOp m = cast(m32, DType::uint64);
  const UOp turns =
      (cast(m32 * w[0], DType::uint64) << word64(32)) + m * cast(w[1], DType::uint64) + ((m * cast(w[2], DType::uint64)) >> word64(32));
  return from_fixed_point(turns, {}, l);
}

Angle reduce_float64(const UOp& x, const FloatLayout& l) {
  const UOp bits = bitcast(x, DType::uint64), m = (bits & word64(0xfffffffffffff)) | word64(0x10000000000000);
  const UOp start = (bits >> word64(52)) - word64(1077 - 64);
  const auto w = shifted_words(table_words(start >> word64(6), 16, DType::uint64), start & word64(63), 64);
  const UOp middle = m * w[1], low = middle + high_word(m, w[2]);
  const UOp turns = m * w[0] + high_word(m, w[1]) + cast(low < middle, DType::uint64);
  return from_fixed_point(turns, low, l);
}

}  // namespace

Angle reduce_angle(const UOp& x) {
  const FloatLayout l = float_layout(x.dtype());
  const Angle large = x.dtype() == DType::float64 ? reduce_float64(x, l) : reduce_float32(x, l);
  const UOp small = x < l.num(0.5);  // the fixed point would lose places
  return {where(small, l.bits(0), large.quadrant), where(small, x, large.rest)};
}

}  // namespace tinygrad::codegen
