#pragma once
/// What each ALU op does to values: the one definition that constant folding, the evaluator and the interpreted device share.

#include <algorithm>
#include <cmath>

#include "dtype/scalar.h"

/// Operands have one dtype, which is the result's too unless a comment says otherwise.
///   float64           computed in double; transcendental functions are the C library's
///   other floats      computed in float32 and rounded to the dtype; transcendental functions in double and rounded once, so float32
///                     results are correctly rounded but for rare ties of the C library's last bit
///   integers          wrap; a quotient or remainder by zero is 0
///   `index`           unbounded in meaning, so what an int64 does not hold throws InternalError
///   bool              computed as the integers 0 and 1, then "is it not zero": add is or, mul is and, sub is xor
/// Operands of different dtypes and dtypes that an op does not take throw DTypeError.
namespace tinygrad::scalar {

Scalar add(const Scalar& a, const Scalar& b);
Scalar sub(const Scalar& a, const Scalar& b);
Scalar mul(const Scalar& a, const Scalar& b);
/// a*b+c; floats are rounded once (a fused multiply-add).
Scalar mulacc(const Scalar& a, const Scalar& b, const Scalar& c);
Scalar neg(const Scalar& a);
/// The greater; a NaN wins, and 0.0 is greater than -0.0 (IEEE 754-2019 maximum).
Scalar max(const Scalar& a, const Scalar& b);

// Floats only.
Scalar fdiv(const Scalar& a, const Scalar& b);
Scalar reciprocal(const Scalar& a);
Scalar sqrt(const Scalar& a);
Scalar exp2(const Scalar& a);
Scalar log2(const Scalar& a);
Scalar sin(const Scalar& a);
/// a * 2^n for an n without a fraction.
Scalar ldexp(const Scalar& a, const Scalar& n);
inline double ldexp_double(double a, double n) { return std::isnan(n) ? n : std::ldexp(a, int(std::clamp(n, -4096.0, 4096.0))); }
/// Towards zero; an integer is itself.
Scalar trunc(const Scalar& a);
/// C's pow for floats. For integers by repeated multiplication; a negative exponent gives the truncated quotient: 0 unless a is 1 or -1.
Scalar pow(const Scalar& a, const Scalar& b);

// Integers only.
/// The quotient towards zero, as in C.
Scalar cdiv(const Scalar& a, const Scalar& b);
/// a - b*cdiv(a, b): has the sign of a.
Scalar cmod(const Scalar& a, const Scalar& b);
/// The quotient towards minus infinity, as in Python.
Scalar floordiv(const Scalar& a, const Scalar& b);
/// a - b*floordiv(a, b): has the sign of b.
Scalar floormod(const Scalar& a, const Scalar& b);

// Integers and bool.
Scalar and_(const Scalar& a, const Scalar& b);
Scalar or_(const Scalar& a, const Scalar& b);
Scalar xor_(const Scalar& a, const Scalar& b);

// Integers only; the amount may have any integer dtype. An amount that is negative or not below the width shifts every bit out.
Scalar shl(const Scalar& a, const Scalar& amount);
/// Fills with the sign for signed types.
Scalar shr(const Scalar& a, const Scalar& amount);

// The result is a bool. A NaN is not less than, not equal to and different from everything; -0.0 equals 0.0.
Scalar cmplt(const Scalar& a, const Scalar& b);
Scalar cmpne(const Scalar& a, const Scalar& b);
Scalar cmpeq(const Scalar& a, const Scalar& b);

/// `a` if the bool `condition` is true, else `b`.
Scalar where(const Scalar& condition, const Scalar& a, const Scalar& b);

/// Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Both are uint64, the first
/// word of counter and key in the low half, as in tinygrad.
Scalar threefry(const Scalar& counter, const Scalar& key);
uint64_t threefry2x32(uint64_t counter, uint64_t key);

}  // namespace tinygrad::scalar
