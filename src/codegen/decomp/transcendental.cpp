#include "codegen/decomp/transcendental.h"

#include <algorithm>

#include "codegen/decomp/float_layout.h"
#include "codegen/decomp/reduce_angle.h"

// The polynomials interpolate at the Chebyshev nodes of their interval, computed with 60 digits.
namespace tinygrad::codegen {

namespace {

// exp2: x = n + f with n an integer and |f| <= 1/2.

constexpr double exp2_float32[] = {0.693147188, 0.240226508, 0.0555035711, 0.00961808256, 0.00133908634, 0.000154531629};
constexpr double exp2_float64[] = {0.693147180559945309,   0.240226506959100712,    0.055504108664821627,     0.00961812910762847949,
                                   0.00133335581464064707, 0.000154035303933707334, 0.0000152527338415567726, 1.32154868087055628e-6,
                                   1.01780570877339411e-7, 7.05489730415549928e-9,  4.45581790833606449e-10,  2.57293241773623042e-11};

UOp exp2_polynomial(const UOp& f) {
  const bool wide = f.dtype() == DType::float64;
  return f * polynomial(f, wide ? std::span<const double>(exp2_float64) : exp2_float32) + constant(f.dtype(), 1);
}

/// Adding and taking off 1.5 * 2^mantissa leaves the nearest integer, in the low bits of the sum.
UOp integer_shifter(const FloatLayout& l) { return l.num(std::ldexp(1.5, l.mantissa)); }

/// The powers of two that are infinite or zero from these exponents on, for whatever is near them.
double top_exponent(const FloatLayout& l) { return l.bias + 2; }
double bottom_exponent(const FloatLayout& l) { return -(l.bias + l.mantissa + 2); }

/// A NaN passes.
UOp clamped(const UOp& x, double bottom, double top) {
  const FloatLayout l = float_layout(x.dtype());
  const UOp below = where(l.num(top) < x, l.num(top), x);
  return where(below < l.num(bottom), l.num(bottom), below);
}

/// 2 to the power x + rest, where the rest is far below an ulp of x, and x is clamped so that n stays small; whatever n a NaN has, it
/// stays one.
UOp exp2_of_sum(const UOp& x, const UOp& rest) {
  const FloatLayout l = float_layout(x.dtype());
  // The lowest bits of the sum are n and twice the bias: its halves are the exponents of two factors, each a normal number. The second
  // product alone may round, to a denormal.
  const UOp shifter = l.num(std::ldexp(1.5, l.mantissa) + 2 * l.bias), shifted = x + shifter;
  const UOp n = l.to_bits(shifted) - l.to_bits(shifter);
  // A float32 is made of n anew: compilers that may reassociate, as those of WGSL, take what was added and is taken off for nothing.
  const UOp nearest = x.dtype() == DType::float64 ? shifted - shifter : cast(n, x.dtype());
  const UOp p = exp2_polynomial(x - nearest + rest);
  const UOp both = bitcast(shifted, l.unsigned_bits), half = both >> constant(l.unsigned_bits, 1);
  const auto factor = [&](const UOp& exponent) { return l.to_float(exponent << constant(l.unsigned_bits, l.mantissa)); };
  return p * factor(half) * factor(both - half);
}

/// LDEXP takes any n. Numbers too large for the shifter (from 2^22, 2^51 on) have some n near them and p above 0, whatever f is, since the
/// degree is even: the result is infinite or zero as it should be. An infinity has no f, and what is no number is not below 1/2.
UOp exp2_by_ldexp(const UOp& x) {
  const FloatLayout l = float_layout(x.dtype());
  const UOp shifter = integer_shifter(l), nearest = x + shifter - shifter, f = x - nearest;
  return alu(Op::LDEXP, {exp2_polynomial(where(f < l.num(0.5), f, l.num(0.5))), nearest});
}

/// What c, rounded to x's dtype, is short of k / ln2 for a small k, as exp(k x) has it: exp2 of x times that number is meant. 0 for others.
double rest_of_factor(double c, DType dtype) {
  const long double ln2 = 0.693147180559945309417232121458176568L, k = std::nearbyint(static_cast<long double>(c) * ln2 * 64) / 64;
  return Scalar::from_double(double(k / ln2), dtype).as_double() == c ? double(k / ln2 - static_cast<long double>(c)) : 0;
}

// log2: x = 2^e * m with m between the roots of 1/2 and of 2.

struct Split {
  UOp e, m;
};

/// Of a positive x; what it gives for others is replaced afterwards.
Split split_exponent(const UOp& x) {
  const FloatLayout l = float_layout(x.dtype());
  const int up = l.mantissa + 2;
  const UOp small = x < l.num(std::ldexp(1.0, 1 - l.bias));
  const UOp bits = l.to_bits(where(small, x * l.num(std::ldexp(1.0, up)), x));
  const int64_t root_half = x.dtype() == DType::float64 ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  const UOp e = (bits - l.bits(root_half)) >> l.bits(l.mantissa);
  const UOp m = l.to_float(bits - (e << l.bits(l.mantissa)));
  return {cast(e - where(small, l.bits(up), l.bits(0)), x.dtype()), m};
}

UOp log2_special(const UOp& x, const UOp& result) {
  const FloatLayout l = float_layout(x.dtype());
  const UOp finite = where(x < l.num(0), l.nan(), where(eq(x, l.num(0)), l.num(-INFINITY), result));
  return where(logical_not(x < l.inf()), x, finite);  // infinity and NaN are their own
}

constexpr double log2_float32[] = {1.44269504,   -0.721347354, 0.48089852,   -0.360696542, 0.288552561,
                                   -0.239608122, 0.204857648,  -0.191388377, 0.184760334,  -0.107497894};

UOp log2_of_float32(const UOp& x) {
  const auto [e, m] = split_exponent(x);
  const UOp f = m - constant(DType::float32, 1);
  return e + f * polynomial(f, log2_float32);
}

/// A number as a sum of two; `lo` is below an ulp of `hi`.
struct Two {
  UOp hi, lo;
};

/// The upper 26 bits, exactly, and the rest.
Two halves(const UOp& x) {
  const FloatLayout l = float_layout(DType::float64);
  const UOp hi = l.to_float(l.to_bits(x) & l.bits(~int64_t{0x7ffffff}));
  return {hi, x - hi};
}

/// The product with 26 bits in `hi`, so that nobody may fuse its multiplication with a later addition.
Two product(const UOp& a, const UOp& b) {
  const UOp hi = halves(a * b).hi;
  const Two x = halves(a), y = halves(b);
  return {hi, (x.hi * y.hi - hi) + x.hi * y.lo + x.lo * y.hi + x.lo * y.lo};
}

// log2(m) = 2/ln2 atanh(s) with s = (m-1)/(m+1): 2/ln2 s + s z P(z), z = s*s.
constexpr double atanh_tail[] = {0.961796693925975605, 0.577078016355585255, 0.412198583111230328,
                                 0.320598897941227291, 0.262308195194113589, 0.221952502495962994,
                                 0.192392597760650039, 0.168623980168556557, 0.171420984405690299};

/// Base-2 logarithm with some 60 bits.
Two log2_of_float64(const UOp& x) {
  const FloatLayout l = float_layout(DType::float64);
  const auto [e, m] = split_exponent(x);
  const UOp above = m + l.num(1), lost = m - (above - l.num(1)), f = m - l.num(1);
  const UOp s = alu(Op::FDIV, {f, above});
  const Two back = product(s, above);
  const UOp s_lo = alu(Op::FDIV, {(f - back.hi) - back.lo - s * lost, above});
  const UOp z = s * s;
  const Two first = product(s, l.num(2.8853900817779268));
  const UOp rest = first.lo + (s_lo * l.num(2.8853900817779268) + s * l.num(4.0710547481862064e-17)) + s * z * polynomial(z, atanh_tail);
  const UOp sum = e + first.hi, lo = ((e - sum) + first.hi) + rest;
  const UOp hi = sum + lo;
  return {hi, (sum - hi) + lo};
}

// sin: after the reduction, |r| <= pi/4.

constexpr double sin_float32[] = {-0.166666667, 0.00833333187, -0.000198400844, 2.72496201e-6};
constexpr double cos_float32[] = {0.0416666667, -0.00138888877, 2.48005984e-5, -2.7300704e-7};
constexpr double sin_float64[] = {-0.166666666666666667,   0.00833333333333333148,  -0.00019841269841265041, 2.75573192193205798e-6,
                                  -2.50521062259944007e-8, 1.60585305966459547e-10, -7.58663688282515965e-13};
constexpr double cos_float64[] = {0.0416666666666666667,  -0.00138888888888888879,  0.0000248015873015846331, -2.75573192213924907e-7,
                                  2.08767557874926059e-9, -1.14704603192095118e-11, 4.74583841253102296e-14};

}  // namespace

UOp exp2_by_arithmetic(const UOp& x, bool has_ldexp) {
  if (has_ldexp) return exp2_by_ldexp(x);
  const FloatLayout l = float_layout(x.dtype());
  return exp2_of_sum(clamped(x, bottom_exponent(l), top_exponent(l)), constant(x.dtype(), 0));
}

UOp exp2_of_product(const UOp& x, const UOp& factor, bool has_ldexp) {
  const FloatLayout l = float_layout(x.dtype());
  const double c = const_value(factor)->as_double();
  const UOp low = l.num(rest_of_factor(c, x.dtype()));
  // The product of v less `from`, a number near it, with what rounding took from the product where multiplications and additions are fused.
  const auto less = [&](const UOp& v, const UOp& from) { return alu(Op::MULACC, {v, low, alu(Op::MULACC, {v, factor, -from})}); };
  if (!has_ldexp) {
    const auto [bottom, top] = std::minmax({bottom_exponent(l) / c, top_exponent(l) / c});
    const auto is_some = [&](double bound) { return std::abs(Scalar::from_double(bound, x.dtype()).as_double()) < INFINITY; };
    if (std::isinf(c) || !is_some(bottom) || !is_some(top)) return exp2_by_arithmetic(x * factor, false);  // by no usual number
    const UOp in = clamped(x, bottom, top), product = in * factor;
    return exp2_of_sum(product, less(in, product));
  }
  const UOp product = x * factor, shifter = integer_shifter(l), nearest = product + shifter - shifter, f = less(x, nearest);
  // Of a large product f is all that was rounded, and means nothing.
  const UOp below = where(f < l.num(0.625), f, l.num(0.625)), bounded = where(l.num(-0.625) < below, below, l.num(-0.625));
  return alu(Op::LDEXP, {exp2_polynomial(bounded), nearest});
}

UOp log2_by_arithmetic(const UOp& x) { return log2_special(x, x.dtype() == DType::float64 ? log2_of_float64(x).hi : log2_of_float32(x)); }

UOp sin_by_arithmetic(const UOp& x) {
  const FloatLayout l = float_layout(x.dtype());
  const bool wide = x.dtype() == DType::float64;
  const UOp magnitude = l.abs(x);
  const Angle angle = reduce_angle(magnitude);
  const UOp r = angle.rest, z = r * r;
  const UOp sine = r + r * z * polynomial(z, wide ? std::span<const double>(sin_float64) : sin_float32);
  const UOp cosine = l.num(1) - (z * l.num(0.5) - z * z * polynomial(z, wide ? std::span<const double>(cos_float64) : cos_float32));
  const UOp value = where(eq(angle.quadrant & l.bits(1), l.bits(0)), sine, cosine);
  const UOp turned = where(eq(angle.quadrant & l.bits(2), l.bits(0)), value, -value);
  const UOp odd = where(x < l.num(0), -turned, turned);
  // Tiny arguments, -0 among them, are their own sine.
  const UOp result = where(magnitude < l.num(std::ldexp(1.0, -l.mantissa / 2 - 3)), x, odd);
  return where(magnitude < l.inf(), result, l.nan());
}

UOp pow_by_arithmetic(const UOp& x, const UOp& y, bool has_float64) {
  if (x.dtype() == DType::float32 && has_float64)
    return cast(pow_by_arithmetic(cast(x, DType::float64), cast(y, DType::float64), true), DType::float32);
  const FloatLayout l = float_layout(x.dtype());
  const UOp magnitude = l.abs(x), one = l.num(1), zero = l.num(0);

  UOp value;
  if (x.dtype() == DType::float64) {
    // y log2 x in two parts. Where the first is not finite or out of range, the second means nothing.
    const Two log = log2_of_float64(magnitude);
    const Two main = product(log.hi, y);
    const UOp sum = main.hi + (main.lo + log.lo * y), rest = (main.hi - sum) + (main.lo + log.lo * y);
    const UOp plain = log2_special(magnitude, log.hi) * y;
    const UOp usable = l.abs(plain) < l.num(2000);
    value = exp2_of_sum(clamped(where(usable, sum, plain), bottom_exponent(l), top_exponent(l)), where(usable, rest, zero));
  } else {
    value = exp2_by_arithmetic(log2_by_arithmetic(magnitude) * y);
  }

  const UOp whole = eq(alu(Op::TRUNC, {y}), y), half = y * l.num(0.5);
  const UOp odd = whole & ne(alu(Op::TRUNC, {half}), half) & (l.abs(y) < l.inf());
  const UOp negative = l.to_bits(x) < l.bits(0);
  value = where(negative & odd, -value, value);
  value = where((x < zero) & logical_not(whole) & (magnitude < l.inf()), l.nan(), value);
  value = where(eq(magnitude, one) & eq(l.abs(y), l.inf()), one, value);
  return where(eq(y, zero) | eq(x, one), one, value);
}

}  // namespace tinygrad::codegen
