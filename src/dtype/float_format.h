#pragma once
/// Binary floating-point layouts and the conversion between any of them and double, in integer arithmetic.

#include <bit>
#include <cstdint>

#include <tinygrad/dtype.h>

namespace tinygrad {

/// A layout with, from the top: a sign, `exponent_bits` biased by 2^(exponent_bits-1)-1, and `mantissa_bits`. Exponent 0 holds the
/// subnormals. With infinities the last exponent is theirs and the NaNs'; without, only the value of all ones is a NaN. In `fnuz` layouts
/// ("finite, NaN, unsigned zero") the bias is one more, every magnitude is finite and the bits of -0 are the NaN.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;
  uint64_t nan;  ///< the positive NaN that conversions produce
  bool fnuz = false;

  constexpr int sign_bit() const { return exponent_bits + mantissa_bits; }
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - (fnuz ? 0 : 1); }
  constexpr uint64_t magnitude_mask() const { return (uint64_t{1} << sign_bit()) - 1; }
  constexpr uint64_t mantissa_mask() const { return (uint64_t{1} << mantissa_bits) - 1; }
  /// The least magnitude that is not a finite number: infinity, or the NaN of a layout without infinities; one more than all of fnuz.
  constexpr uint64_t first_non_finite() const {
    return has_infinity ? magnitude_mask() - mantissa_mask() : magnitude_mask() + (fnuz ? 1 : 0);
  }
};

namespace formats {
// The OCP 8-bit layouts (https://arxiv.org/abs/2209.05433) with the NaNs that PyTorch and tinygrad write, and those of
// https://arxiv.org/abs/2206.02915.
inline constexpr FloatFormat fp8e4m3{4, 3, false, 0x7f};
inline constexpr FloatFormat fp8e5m2{5, 2, true, 0x7f};
inline constexpr FloatFormat fp8e4m3fnuz{4, 3, false, 0x80, true};
inline constexpr FloatFormat fp8e5m2fnuz{5, 2, false, 0x80, true};
inline constexpr FloatFormat float16{5, 10, true, 0x7e00};
inline constexpr FloatFormat bfloat16{8, 7, true, 0x7fc0};
inline constexpr FloatFormat float32{8, 23, true, 0x7fc00000};
}  // namespace formats

/// The layout of a float of at most 32 bits.
constexpr FloatFormat format_of(DType d) {
  switch (d) {
    case DType::fp8e4m3: return formats::fp8e4m3;
    case DType::fp8e5m2: return formats::fp8e5m2;
    case DType::fp8e4m3fnuz: return formats::fp8e4m3fnuz;
    case DType::fp8e5m2fnuz: return formats::fp8e5m2fnuz;
    case DType::float16: return formats::float16;
    case DType::bfloat16: return formats::bfloat16;
    case DType::float32: return formats::float32;
    default: detail::throw_not_a_float(d);
  }
}

/// The number as bits of layout f (at most float32's widths), rounded once to nearest, ties to even; past half an ulp beyond the
/// largest finite number it is infinity, or NaN where the layout has none (as PyTorch's float8_e4m3fn: it does not saturate).
/// A NaN keeps its sign, where the layout has one of each, and loses its payload.
[[gnu::always_inline]] constexpr uint64_t encode_float(const FloatFormat& f, double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = (bits >> 63) << f.sign_bit();
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  if (magnitude > 0x7ff0000000000000u) return sign | f.nan;

  // The 53-bit significand is shifted to the target's place, further for a subnormal result. A subnormal double needs no care: it
  // has a shift of hundreds.
  int exponent = static_cast<int>(magnitude >> 52) - 1023 + f.bias();
  int shift = 52 - f.mantissa_bits;
  if (exponent < 1) {
    shift += 1 - exponent;
    exponent = 1;
  }
  const uint64_t zero = f.fnuz ? 0 : sign;
  if (shift > 53) return zero;  // below half of the least subnormal
  const uint64_t significand = (magnitude & 0x000fffffffffffffu) | 0x0010000000000000u;
  const uint64_t rest = significand & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  uint64_t kept = significand >> shift;
  if (rest > half || (rest == half && (kept & 1))) ++kept;

  // The leading bit of `kept` counts as one step of the exponent, so a carry out of the mantissa needs no special case.
  const uint64_t result = (static_cast<uint64_t>(exponent - 1) << f.mantissa_bits) + kept;
  if (result == 0) return zero;
  if (result < f.first_non_finite()) return sign | result;
  return sign | (f.has_infinity ? f.first_non_finite() : f.nan);
}

/// The number that bits of layout f stand for; exact. A NaN keeps its sign and loses its payload.
[[gnu::always_inline]] constexpr double decode_float(const FloatFormat& f, uint64_t bits) {
  const uint64_t sign = ((bits >> f.sign_bit()) & 1) << 63;
  const uint64_t magnitude = bits & f.magnitude_mask();
  if (f.fnuz && bits == f.nan) return std::bit_cast<double>(uint64_t{0x7ff8000000000000u});
  if (magnitude >= f.first_non_finite()) {
    const bool infinite = f.has_infinity && magnitude == f.first_non_finite();
    return std::bit_cast<double>(sign | (infinite ? 0x7ff0000000000000u : 0x7ff8000000000000u));
  }
  int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  uint64_t mantissa = magnitude & f.mantissa_mask();
  if (exponent == 0) {
    if (mantissa == 0) return std::bit_cast<double>(sign);
    const int shift = f.mantissa_bits + 1 - std::bit_width(mantissa);
    mantissa = (mantissa << shift) & f.mantissa_mask();
    exponent = 1 - shift;
  }
  const uint64_t biased = static_cast<uint64_t>(exponent - f.bias() + 1023);
  return std::bit_cast<double>(sign | (biased << 52) | (mantissa << (52 - f.mantissa_bits)));
}

}  // namespace tinygrad
