#pragma once
/// What 64-bit integers do that is not done word by word: conversions from and to floats, and division. Written in 64-bit integers, of
/// which only words of 32 bits are converted: for targets that lack the op, or 64-bit integers altogether.

#include "target/target.h"
#include "uop/uop.h"

namespace tinygrad::codegen {

/// int64 or uint64.
bool is_long(DType d);

enum class RoundTo {
  nearest,  ///< ties to even
  odd,      ///< an inexact result gets an odd last bit, so that rounding on to a narrower float gives what rounding once would
};

/// An int64 or uint64 as float32.
UOp long_to_float32(const UOp& x, RoundTo rounding);
/// As float64, to nearest.
UOp long_to_float64(const UOp& x);
/// A float as int64 or uint64, by the rules of Scalar::cast: what is out of range, and NaN, becomes 2^63.
UOp float_to_long(const UOp& x, DType to);

/// CDIV of two int64 or uint64, from a few estimates in float32.
UOp long_quotient(const UOp& x, const UOp& divisor, const Target& target);

}  // namespace tinygrad::codegen
