#pragma once
/// Arithmetic, comparison and mathematical functions, element by element. Operands promote to their common dtype and broadcast.
/// Functions whose results are not integers take integers and bools as the default float. Errors: ShapeError where shapes do not
/// broadcast, DTypeError for dtypes an op does not take.

#include <optional>

#include <tinygrad/op_arguments.h>

#include "ops/operand.h"

namespace tinygrad::ops {

// Arithmetic.
UOp add(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp sub(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp mul(const Operand& a, const Operand& b, const OpsContext& ctx = {});
/// None: true division, floats. Trunc and floor round the quotient; of integers they give integers, and 0 for a division by 0.
UOp div(const Operand& a, const Operand& b, Rounding rounding = Rounding::none, const OpsContext& ctx = {});
/// The remainder with the sign of the divisor, as Python's %.
UOp mod(const Operand& a, const Operand& b, const OpsContext& ctx = {});
/// The remainder with the sign of the dividend, as C's.
UOp fmod(const Operand& a, const Operand& b, const OpsContext& ctx = {});
/// Integers to the power of integers stay integers: ValueError for a negative number as exponent. A negative element of an exponent that is
/// only known when it runs gives the quotient towards zero: 0 unless the base is 1 or -1.
UOp pow(const Operand& base, const Operand& exponent, const OpsContext& ctx = {});
UOp maximum(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp minimum(const Operand& a, const Operand& b, const OpsContext& ctx = {});
/// A map that reverses order and is its own inverse: -x of floats, ~x of integers and bools.
UOp inverse(const UOp& x);
/// -x; of a bool its negation.
UOp neg(const UOp& x);
UOp abs(const UOp& x);
/// -1, 0 or 1; 0 for NaN.
UOp sign(const UOp& x);
UOp square(const UOp& x);
UOp reciprocal(const UOp& x, const OpsContext& ctx = {});
/// At least one bound; both must not contradict each other (then the result is `max`). An integer bound below (a maximum above) all that an
/// integer dtype holds changes nothing, nor the dtype.
UOp clamp(const UOp& x, const std::optional<Operand>& min, const std::optional<Operand>& max, const OpsContext& ctx = {});
/// start + (end - start) * weight.
UOp lerp(const UOp& start, const UOp& end, const Operand& weight, const OpsContext& ctx = {});
/// The magnitude of `a` with the sign of `b`, that of -0.0 included.
UOp copysign(const Operand& a, const Operand& b, const OpsContext& ctx = {});
/// log(exp(a) + exp(b)) without overflow.
/// log(1 + x) for x >= 0, right for the smallest ones too.
UOp log1p(const UOp& x, const OpsContext& ctx = {});
/// e^x - 1, which keeps its digits near 0.
UOp expm1(const UOp& x, const OpsContext& ctx = {});
UOp logaddexp(const Operand& a, const Operand& b, const OpsContext& ctx = {});

// Comparison and choice. Comparisons of integers with numbers and of signed integers with uint64 are exact: what a dtype does not hold is
// neither wrapped nor rounded.
UOp eq(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp ne(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp lt(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp gt(const Operand& a, const Operand& b, const OpsContext& ctx = {});
/// False if either is NaN.
UOp le(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp ge(const Operand& a, const Operand& b, const OpsContext& ctx = {});
/// `a` where the condition holds, else `b`; the condition is taken as a bool.
UOp where(const Operand& condition, const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp masked_fill(const UOp& x, const UOp& mask, const Operand& value, const OpsContext& ctx = {});
UOp isnan(const UOp& x);
UOp isinf(const UOp& x, bool detect_positive = true, bool detect_negative = true);
UOp isfinite(const UOp& x);
/// |a - b| <= atol + rtol * |b|; equal infinities are close.
UOp isclose(const UOp& a, const Operand& b, const CloseOptions& options = {}, const OpsContext& ctx = {});

// Bits and logic.
UOp logical_not(const UOp& x);
UOp bitwise_not(const UOp& x);
UOp bitwise_and(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp bitwise_or(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp bitwise_xor(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp lshift(const Operand& a, const Operand& b, const OpsContext& ctx = {});
UOp rshift(const Operand& a, const Operand& b, const OpsContext& ctx = {});
/// The bits read as another dtype; where item sizes differ the last axis is rescaled (little endian).
UOp bitcast(const UOp& x, DType dtype);
/// Threefry-2x32-20 of the uint64 counter under the uint64 key.
UOp threefry(const UOp& counter, const UOp& key);

// Rounding; integers are their own.
UOp trunc(const UOp& x);
UOp floor(const UOp& x);
UOp ceil(const UOp& x);
/// To the nearest integer, ties to even.
UOp round(const UOp& x);

// Mathematical functions. float16, bfloat16 and fp8 are computed in float32 where that matters for the result.
UOp sqrt(const UOp& x, const OpsContext& ctx = {});
UOp rsqrt(const UOp& x, const OpsContext& ctx = {});
UOp exp(const UOp& x, const OpsContext& ctx = {});
UOp exp2(const UOp& x, const OpsContext& ctx = {});
UOp log(const UOp& x, const OpsContext& ctx = {});
UOp log2(const UOp& x, const OpsContext& ctx = {});
UOp log10(const UOp& x, const OpsContext& ctx = {});
UOp sin(const UOp& x, const OpsContext& ctx = {});
UOp cos(const UOp& x, const OpsContext& ctx = {});
UOp tan(const UOp& x, const OpsContext& ctx = {});
UOp asin(const UOp& x, const OpsContext& ctx = {});
UOp acos(const UOp& x, const OpsContext& ctx = {});
UOp atan(const UOp& x, const OpsContext& ctx = {});
UOp sinh(const UOp& x, const OpsContext& ctx = {});
UOp cosh(const UOp& x, const OpsContext& ctx = {});
UOp tanh(const UOp& x, const OpsContext& ctx = {});
UOp asinh(const UOp& x, const OpsContext& ctx = {});
UOp acosh(const UOp& x, const OpsContext& ctx = {});
UOp atanh(const UOp& x, const OpsContext& ctx = {});
UOp erf(const UOp& x, const OpsContext& ctx = {});

/// `x` without what an fp8 dtype does not hold; as it is for other dtypes.
UOp saturated(const UOp& x, DType dtype);

// Nodes that mark a value.
/// The value without a gradient.
UOp detach(const UOp& x);
/// The value in row-major memory of its own; `x` if it has that already.
UOp contiguous(const UOp& x);
/// The value, its gradient made contiguous.
UOp contiguous_backward(const UOp& x);
/// The value on another device; `x` if it is there.
UOp copy_to(const UOp& x, Symbol device);

}  // namespace tinygrad::ops
