// Mathematical functions over EXP2, LOG2, SIN and SQRT.
#include <array>
#include <cmath>
#include <numbers>

#include "ops/elementwise.h"
#include "ops/expr.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

constexpr double pi = std::numbers::pi, ln2 = std::numbers::ln2;

/// f(x) in at least float32, rounded to x's dtype once.
template <class F>
UOp in_float32(const UOp& x, const OpsContext& ctx, F&& f) {
  const UOp v = to_float(x, ctx);
  return tinygrad::cast(f(Expr(tinygrad::cast(v, least_upper_dtype(v.dtype(), DType::float32)))), v.dtype());
}

bool is_wide(const UOp& x) { return x.dtype() == DType::float64; }

/// By Horner's rule, the highest power first.
template <size_t N>
Expr polynomial(const Expr& x, const std::array<double, N>& coefficients) {
  Expr y = x * coefficients[0];
  for (size_t i = 1; i + 1 < N; ++i) y = (y + coefficients[i]) * x;
  return y + coefficients[N - 1];
}

/// log(x + root(x)) where root(x) is as good as x for large ones: log(2x) before anything can overflow.
template <class F>
UOp log_of_sum(const Expr& x, F&& root) {
  const Expr far = x > double(1 << 28), near = ops::where(far, 1, x);
  return Expr(log(ops::where(far, x, near + root(near)))) + ops::where(far, ln2, as_node(0, x.dtype()));
}

UOp unary(Op op, const UOp& x, const OpsContext& ctx) { return alu(op, {to_float(x, ctx)}); }

}  // namespace

UOp trunc(const UOp& x) { return is_float(x.dtype()) ? alu(Op::TRUNC, {x}) : x; }

UOp floor(const UOp& x) {
  if (!is_float(x.dtype())) return x;
  const Expr t = trunc(x);
  return ops::where(lt(x, t), t - 1, t);
}

UOp ceil(const UOp& x) {
  if (!is_float(x.dtype())) return x;
  const Expr t = trunc(x);
  return ops::where(lt(t, x), t + 1, t);
}

UOp round(const UOp& x) {
  if (!is_float(x.dtype())) return x;
  // x - trunc(x) is exact, unlike x + 0.5.
  const Expr t = trunc(x), rest = abs(sub(x, t)), half = t * 0.5;
  const Expr away = (rest > 0.5) | (Expr(ops::eq(rest, 0.5)) & ops::ne(trunc(half), half));
  return ops::where(away, t + ops::where(lt(x, 0), as_node(-1, x.dtype()), 1), t);
}

UOp sqrt(const UOp& x, const OpsContext& ctx) { return unary(Op::SQRT, x, ctx); }
UOp rsqrt(const UOp& x, const OpsContext& ctx) { return reciprocal(sqrt(x, ctx)); }
UOp exp2(const UOp& x, const OpsContext& ctx) { return unary(Op::EXP2, x, ctx); }
UOp log2(const UOp& x, const OpsContext& ctx) { return unary(Op::LOG2, x, ctx); }
UOp sin(const UOp& x, const OpsContext& ctx) { return unary(Op::SIN, x, ctx); }

UOp exp(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return exp2(v * (1 / ln2)); });
}
UOp log(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return Expr(log2(v)) * ln2; });
}
UOp log10(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return Expr(log2(v)) * std::log10(2.0); });
}

UOp log1p(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) {
    // What rounding has taken from 1 + v, to first order; for the gradient it is nothing.
    const Expr sum = v + 1.0, lost = (v - (sum - 1.0)) / sum;
    return Expr(log(sum)) + detach(lost);
  });
}

UOp cos(const UOp& x, const OpsContext& ctx) {
  // 1 - 2 sin^2(x/2): x/2 is exact, where pi/2 - x loses as many digits as x has before the point.
  return in_float32(x, ctx, [](const Expr& v) { return 1.0 - Expr(square(sin(v * 0.5))) * 2.0; });
}
UOp tan(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return div(sin(v), cos(v)); });
}

UOp asin(const UOp& x, const OpsContext& ctx) {
  // (pi/2 - asin(m)) / sqrt(1 - m) for 0 <= m <= 1, to 2e-8 (Abramowitz and Stegun, 4.4.46) and to 5e-18 (Chebyshev's interpolation).
  static constexpr std::array<double, 8> narrow = {-0.0012624911, 0.0066700901, -0.0170881256, 0.0308918810,
                                                   -0.0501743046, 0.0889789874, -0.2145988016, 1.5707963050};
  static constexpr std::array<double, 20> wide = {
      -3.0384014775077846e-06, 3.378311483256176e-05, -0.0001783526001681299, 0.0005987252822321031, -0.0014490898471891194,
      0.002731768159313689,    -0.004258652829282266, 0.005793270866961212,   -0.007230894638030571, 0.00864843277870555,
      -0.010233905960743812,   0.012218416347312506,  -0.014886471653564095,  0.018672314453702134,  -0.024374327392466175,
      0.03368128646786945,     -0.0507928145148144,   0.089048622547553,      -0.2146018366025477,   1.5707963267948966};
  return in_float32(x, ctx, [](const Expr& v) {
    const Expr m = abs(v), ratio = is_wide(v) ? polynomial(m, wide) : polynomial(m, narrow);
    return copysign(pi / 2 - Expr(sqrt(1.0 - m)) * ratio, v);
  });
}
UOp acos(const UOp& x, const OpsContext& ctx) { return sub(pi / 2, asin(x, ctx)); }
UOp atan(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) {
    // Of 1/x where the square of x might overflow: the two angles are a right one together.
    const Expr m = abs(v), far = m > 1.0, w = ops::where(far, reciprocal(ops::where(far, m, 1)), m);
    const Expr angle = asin(w / sqrt(w * w + 1.0));
    return copysign(ops::where(far, pi / 2 - angle, angle), v);
  });
}

UOp sinh(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return (Expr(exp(v)) - exp(-v)) * 0.5; });
}
UOp cosh(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return (Expr(exp(v)) + exp(-v)) * 0.5; });
}
UOp tanh(const UOp& x, const OpsContext& ctx) {
  // 2 sigmoid(2x) - 1.
  return in_float32(x, ctx, [](const Expr& v) { return 2.0 / (1.0 + Expr(exp2(v * (-2 / ln2)))) - 1.0; });
}
UOp asinh(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return copysign(log_of_sum(abs(v), [](const Expr& m) { return sqrt(m * m + 1.0); }), v); });
}
UOp acosh(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return log_of_sum(v, [](const Expr& m) { return Expr(sqrt(m - 1.0)) * sqrt(m + 1.0); }); });
}
UOp atanh(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return Expr(log((v + 1.0) / (1.0 - v))) * 0.5; });
}

UOp erf(const UOp& x, const OpsContext& ctx) {
  // 1 - erf(m) = q exp(-m^2) for m >= 0, q to 1.5e-7 by a polynomial of 1 / (1 + 0.3275911 m) (Abramowitz and Stegun, 7.1.26) ...
  static constexpr std::array<double, 6> narrow = {1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0};
  // ... and (1 + 2m) q to 1.2e-16 by one of (m - 3) / (m + 3) (after Shepherd and Laframboise, Math. Comp. 36, 1981).
  static constexpr std::array<double, 24> wide = {
      9.948820947537195e-10,   -3.169592039553522e-09, -1.3361953304404018e-08, 2.7779061599708634e-08,  1.0195717375790894e-07,
      -1.2038713923616526e-07, -6.167709493550964e-07, 3.3649033965298255e-07,  3.472520280065519e-06,   -7.186149396303622e-07,
      -2.0100627664406107e-05, 4.944031214882928e-06,  0.00012509937435915822,  -0.00010515828085467254, -0.0007798322772742547,
      0.0018886900908332905,   0.002529391816799663,   -0.023770514890662273,   0.06830802734392144,     -0.11927366341681594,
      0.12964515870276264,     -0.04756229435341897,   -0.1356211061245812,     1.2530080582697296};
  return in_float32(x, ctx, [](const Expr& v) {
    const Expr m = abs(v);
    const Expr q = is_wide(v) ? polynomial(1.0 - 6.0 / (m + 3.0), wide) / (m * 2.0 + 1.0) : polynomial(1.0 / (m * 0.3275911 + 1.0), narrow);
    return Expr(sign(v)) * (1.0 - q * exp(-(m * m)));
  });
}

}  // namespace tinygrad::ops
