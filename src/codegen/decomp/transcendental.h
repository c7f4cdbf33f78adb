#pragma once
/// EXP2, LOG2, SIN and POW by arithmetic, for float32 and float64. Special values are those of C. The bounds are in units in the last
/// place of the result, over all inputs, denormal ones and results included; tests/codegen/decomp/decomp_test.cpp measures them.

#include "uop/uop.h"

namespace tinygrad::codegen {

/// 2 to the power x within 1.5 ulp.
UOp exp2_by_arithmetic(const UOp& x, bool has_ldexp = false);

/// 2 to the power x * factor, a CONST. Where multiplications and additions are fused it is that of the exact product, within 2 ulp, and of
/// what a factor like 1/ln2 was rounded from; else the error grows with the exponent to 1.5 ulp for each unit of x.
UOp exp2_of_product(const UOp& x, const UOp& factor, bool has_ldexp);

/// Base-2 logarithm within 2.5 ulp (float64: 1).
UOp log2_by_arithmetic(const UOp& x);

/// Sine within 2.5 ulp for arguments of any size, reduced exactly (Payne and Hanek, "Radian reduction for trigonometric functions",
/// SIGNUM 1983).
UOp sin_by_arithmetic(const UOp& x);

/// x to the power y, as C's pow. float64: within 8 ulp. float32: rounded from float64 where `has_float64`, within 1 ulp; else by float32
/// functions, with an error that grows with |y log2 x| to 200 ulp.
UOp pow_by_arithmetic(const UOp& x, const UOp& y, bool has_float64);

}  // namespace tinygrad::codegen
