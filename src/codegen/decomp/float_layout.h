#pragma once
/// Small helpers to write arithmetic on one float value and its bits as a graph.

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "uop/build.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// float32 or float64 as an integer type of the same size sees it.
struct FloatLayout {
  DType dtype, signed_bits, unsigned_bits;
  int mantissa, bias;
  int64_t sign_bit, infinity;  ///< bit patterns

  UOp num(double value) const { return constant(dtype, value); }
  UOp bits(int64_t value) const { return constant(signed_bits, value); }
  UOp nan() const { return num(std::numeric_limits<double>::quiet_NaN()); }
  UOp inf() const { return num(std::numeric_limits<double>::infinity()); }
  UOp to_bits(const UOp& x) const { return bitcast(x, signed_bits); }
  UOp to_float(const UOp& b) const { return bitcast(b, dtype); }
  UOp abs(const UOp& x) const { return to_float(to_bits(x) & bits(~sign_bit)); }
  /// The magnitude of `x` with the sign of `s`.
  UOp with_sign_of(const UOp& x, const UOp& s) const { return to_float((to_bits(x) & bits(~sign_bit)) | (to_bits(s) & bits(sign_bit))); }
  /// 2 to the power of an integer in the range of normal numbers.
  UOp power_of_two(const UOp& n) const { return to_float((n + bits(bias)) << bits(mantissa)); }
};

inline FloatLayout float_layout(DType d) {
  if (d == DType::float64) {
    return {d, DType::int64, DType::uint64, 52, 1023, std::numeric_limits<int64_t>::min(), 0x7ff0000000000000};
  }
  return {d, DType::int32, DType::uint32, 23, 127, int64_t{std::numeric_limits<int32_t>::min()}, 0x7f800000};
}

/// c[0] + c[1] x + ... by Horner's scheme.
inline UOp polynomial(const UOp& x, std::span<const double> c) {
  UOp sum = constant(x.dtype(), c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = sum * x + constant(x.dtype(), c[i]);
  return sum;
}

}  // namespace tinygrad::codegen
