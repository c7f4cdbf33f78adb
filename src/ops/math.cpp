// Mathematical functions over EXP2, LOG2, SIN and SQRT.
#include <array>
#include <cmath>
#include <numbers>

#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/known.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

constexpr double pi = std::numbers::pi, ln2 = std::numbers::ln2;

bool is_wide(const UOp& x) { return x.dtype() == DType::float64; }

/// A polynomial by Horner's rule, the highest power first.
template <size_t N>
Expr polynomial(const Expr& x, const std::array<double, N>& coefficients) {
  Expr y = x * coefficients[0];
  for (size_t i = 1; i + 1 < N; ++i) y = (y + coefficients[i]) * x;
  return y + coefficients[N - 1];
}

/// The sign of `sign` for a magnitude that is not 0.
Expr with_sign(const Expr& magnitude, const Expr& sign) { return ops::where(sign < 0, -magnitude, magnitude); }

/// pi/2 - x, with more digits of pi than the dtype has.
Expr to_right_angle(const Expr& x) { return pi / 2 - (x - (is_wide(x) ? 6.123233995736766e-17 : -4.3711388286737929e-08)); }

/// What this and larger numbers differ from x - 1 is below their last place.
constexpr double far_from_one = 0x1p54;

/// Narrow floats are computed in float32, which their derivatives need.
UOp unary(Op op, const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [op](const Expr& v) { return alu(op, {v}); });
}

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
UOp rsqrt(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return reciprocal(sqrt(v)); });
}
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
    // What rounding has taken from 1 + v, to first order; for the gradient it is nothing. Of large numbers, infinity included, too.
    const Expr sum = v + 1.0, lost = ops::where(v < double(1 << 26), (v - (sum - 1.0)) / sum, 0);
    return Expr(log(sum)) + detach(lost);
  });
}
UOp expm1(const UOp& x, const OpsContext& ctx) {
  // (e^x - 1 - x) / x^2 for |x| <= 1/2, to 4e-10 and 2e-18 (Chebyshev's interpolation, as those below).
  static constexpr std::array<double, 7> narrow = {
      2.492243643e-5, 0.0001996217623, 0.001388873772, 0.008333182072, 0.04166666714, 0.1666666714, 0.5};
  static constexpr std::array<double, 12> wide = {1.611649651437154647e-10, 2.096295581597607574e-9, 2.505194670972162113e-8,
                                                  2.755707663664272348e-7,  2.755731943362024282e-6, 0.00002480158761614541272,
                                                  0.0001984126984114699187, 0.001388888888870454897, 0.00833333333333335966,
                                                  0.04166666666666706171,   0.1666666666666666666,   0.4999999999999999986};
  return known_of("expm1", x, ctx, [](const Expr& v) {
    const Expr near = v + v * v * (is_wide(v) ? polynomial(v, wide) : polynomial(v, narrow));
    return ops::where(Expr(abs(v)) < 0.5, near, Expr(exp(v)) - 1.0);
  });
}

UOp cos(const UOp& x, const OpsContext& ctx) {
  // 1 - 2 sin^2(x/2): x/2 is exact, where pi/2 - x loses as many digits as x has before the point.
  return known_of("cos", x, ctx, [](const Expr& v) { return 1.0 - Expr(square(sin(v * 0.5))) * 2.0; });
}
UOp tan(const UOp& x, const OpsContext& ctx) {
  return known_of("tan", x, ctx, [](const Expr& v) {
    // sin(x) / cos(x), where cos(x) is sin(2x) / (2 sin(x)): near its zeros too as exact as a sine. 2x does not overflow.
    const Expr far = Expr(abs(v)) > (is_wide(v) ? 0x1p1000 : 0x1p120), s = sin(v),
               other = sin(v * ops::where(far, as_node(0.5, v.dtype()), 2));
    const Expr cosine = ops::where(far, 1.0 - other * other * 2.0, other / (s * 2.0));
    return ops::where(ops::eq(v, 0), v, s / cosine);
  });
}

namespace {

/// Where |x| > 1/2, and the arcsine of x, there of sqrt((1 - |x|) / 2) instead.
struct Arc {
  Expr beyond, angle;
};

Arc arc_of(const Expr& x) {
  // (asin(s) / s - 1) / s^2 as a polynomial of s^2 <= 1/4, to 4e-9 and 1e-18.
  static constexpr std::array<double, 6> narrow = {0.0336908472, 0.01714923836, 0.03110066274, 0.04459940153, 0.07500094543, 0.1666666634};
  static constexpr std::array<double, 14> wide = {
      0.02961201126495512036,  -0.01924167174674304065, 0.01955451333612337895, 0.003044879909455677396, 0.009319560794767446296,
      0.009621842970100281018, 0.01156645961212166857,  0.01396378001220356964, 0.01735281654032549499,  0.02237215744350722242,
      0.03038194447553233999,  0.0446428571425518929,   0.07500000000000117751, 0.1666666666666666659};
  const Expr m = abs(x), beyond = m > 0.5, z = ops::where(beyond, (1.0 - m) * 0.5, x * x), s = ops::where(beyond, sqrt(z), x);
  return {beyond, s + s * z * (is_wide(x) ? polynomial(z, wide) : polynomial(z, narrow))};
}

}  // namespace

UOp asin(const UOp& x, const OpsContext& ctx) {
  return known_of("asin", x, ctx, [](const Expr& v) {
    const auto [beyond, angle] = arc_of(v);
    return ops::where(beyond, with_sign(to_right_angle(angle * 2.0), v), angle);
  });
}
UOp acos(const UOp& x, const OpsContext& ctx) {
  return known_of("acos", x, ctx, [](const Expr& v) {
    const auto [beyond, angle] = arc_of(v);
    const Expr twice = angle * 2.0, obtuse = Expr(to_right_angle(angle)) * 2.0;
    return ops::where(beyond, ops::where(v < 0, obtuse, twice), to_right_angle(angle));
  });
}
UOp atan(const UOp& x, const OpsContext& ctx) {
  // (atan(w) / w - 1) / w^2 as a polynomial of w^2 <= 1, to 3e-9 and 9e-19.
  static constexpr std::array<double, 10> narrow = {0.001488691939, -0.009144629761, 0.02630500111, -0.04896051403, 0.0703191425,
                                                    -0.08931826777, 0.1108826163,    -0.1428400379, 0.1999994932,   -0.3333333308};
  static constexpr std::array<double, 22> wide = {
      7.767624330289918554e-6, -0.00009371186345052625429, 0.0005376839297396244721, -0.001961255427168532599, 0.005140912856746938716,
      -0.01041215326035924155, 0.01718398172211334808,     -0.02419134581014071864,  0.03033071926579050659,   -0.0352713310668712941,
      0.03938687540798632127,  -0.04330653843067066253,    0.04758080083637820624,   -0.05262492229025675314,  0.05882264416776448826,
      -0.06666657934573767841, 0.07692307078827029261,     -0.0909090906193527995,   0.1111111111026829734,    -0.1428571428570123335,
      0.1999999999999991932,   -0.3333333333333333325};
  return known_of("atan", x, ctx, [](const Expr& v) {
    // Beyond 1 it is the arctangent of 1/x: the two angles add up to a right one.
    const Expr far = Expr(abs(v)) > 1.0, w = ops::where(far, reciprocal(v), v), z = w * w;
    const Expr angle = w + w * z * (is_wide(v) ? polynomial(z, wide) : polynomial(z, narrow));
    return ops::where(far, with_sign(to_right_angle(with_sign(angle, v)), v), angle);
  });
}

namespace {

/// e^x / 2 and e^-x / 2, which overflow where sinh and cosh do.
std::pair<Expr, Expr> half_exponentials(const Expr& x) {
  const Expr up = exp(x * 0.5), down = exp(x * -0.5);
  return {up * 0.5 * up, down * 0.5 * down};
}

}  // namespace

UOp sinh(const UOp& x, const OpsContext& ctx) {
  // (sinh(x) / x - 1) / x^2 as a polynomial of x^2 <= 1, to 2e-10 and 3e-22.
  static constexpr std::array<double, 4> narrow = {2.806280258e-6, 0.0001983810197, 0.008333339676, 0.1666666665};
  static constexpr std::array<double, 8> wide = {2.844526416989528563e-15, 7.646625361656657656e-13, 1.605904839635056164e-10,
                                                 2.505210836405804075e-8,  2.75573192240403386e-6,   0.000198412698412697732,
                                                 0.008333333333333333366,  0.1666666666666666667};
  return known_of("sinh", x, ctx, [](const Expr& v) {
    const Expr z = v * v, near = v + v * z * (is_wide(v) ? polynomial(z, wide) : polynomial(z, narrow));
    const auto [up, down] = half_exponentials(v);
    return ops::where(Expr(abs(v)) < 1.0, near, up - down);
  });
}
UOp cosh(const UOp& x, const OpsContext& ctx) {
  return known_of("cosh", x, ctx, [](const Expr& v) {
    const auto [up, down] = half_exponentials(v);
    return up + down;
  });
}
UOp tanh(const UOp& x, const OpsContext& ctx) {
  // (tanh(x) / x - 1) / x^2 as a polynomial of x^2 <= 0.36, to 3e-8 and 5e-17.
  static constexpr std::array<double, 5> narrow = {-0.00626911972, 0.02111095905, -0.05387394885, 0.1333291537, -0.3333333033};
  static constexpr std::array<double, 11> wide = {-0.00001833596211003941992, 0.00008154737806525365138, -0.000232251040679385094,
                                                  0.0005880541548418729,      -0.001455464802800744916,  0.003592083166343457503,
                                                  -0.008863232113541473187,   0.02186948838378092915,    -0.05396825396475762478,
                                                  0.1333333333333019618,      -0.3333333333333332867};
  return known_of("tanh", x, ctx, [](const Expr& v) {
    const Expr n = minus_abs(v), e = exp2(n * (2 / ln2)), z = v * v;
    const Expr near = v + v * z * (is_wide(v) ? polynomial(z, wide) : polynomial(z, narrow));
    return ops::where(n > -0.6, near, with_sign((1.0 - e) / (e + 1.0), v));
  });
}

UOp asinh(const UOp& x, const OpsContext& ctx) {
  return known_of("asinh", x, ctx, [](const Expr& v) {
    const Expr m = abs(v), far = m > far_from_one, n = ops::where(far, 1, m), sum = n + n * n / (Expr(sqrt(n * n + 1.0)) + 1.0);
    const Expr y = Expr(log1p(ops::where(far, m, sum))) + ops::where(far, ln2, as_node(0, v.dtype()));
    return ops::where(ops::eq(v, 0), v, with_sign(y, v));
  });
}
UOp acosh(const UOp& x, const OpsContext& ctx) {
  return known_of("acosh", x, ctx, [](const Expr& v) {
    const Expr far = v > far_from_one, t = v - 1.0, sum = t + Expr(sqrt(t)) * sqrt(t + 2.0);
    return Expr(log1p(ops::where(far, t, sum))) + ops::where(far, ln2, as_node(0, v.dtype()));
  });
}
UOp atanh(const UOp& x, const OpsContext& ctx) {
  return known_of("atanh", x, ctx, [](const Expr& v) {
    const Expr m = abs(v), y = Expr(log1p(m * 2.0 / (1.0 - m))) * 0.5;
    return ops::where(ops::eq(v, 0), v, with_sign(y, v));
  });
}

namespace {

/// 1 - erf(x) for x >= 0.
Expr erfc_of_positive(const Expr& x) {
  // e^(x^2) (1 - erf(x)) as t times a polynomial of t = 1 / (1 + 0.4x), to 6e-9, and as one of (x - 3) / (x + 3) over 1 + 2x, to 1.2e-16
  // (after Shepherd and Laframboise, Math. Comp. 36, 1981).
  static constexpr std::array<double, 11> narrow = {-0.02586707633, 0.1221829361,  -0.1923587898, 0.07960211036,
                                                    0.001806012404, 0.05731352095, 0.1285117428,  0.1695631746,
                                                    0.2079170005,   0.2256528093,  0.225676556};
  static constexpr std::array<double, 24> wide = {
      9.948820947537195e-10,   -3.169592039553522e-09, -1.3361953304404018e-08, 2.7779061599708634e-08,  1.0195717375790894e-07,
      -1.2038713923616526e-07, -6.167709493550964e-07, 3.3649033965298255e-07,  3.472520280065519e-06,   -7.186149396303622e-07,
      -2.0100627664406107e-05, 4.944031214882928e-06,  0.00012509937435915822,  -0.00010515828085467254, -0.0007798322772742547,
      0.0018886900908332905,   0.002529391816799663,   -0.023770514890662273,   0.06830802734392144,     -0.11927366341681594,
      0.12964515870276264,     -0.04756229435341897,   -0.1356211061245812,     1.2530080582697296};
  const Expr bell = exp(-(x * x));
  if (is_wide(x)) return polynomial(1.0 - 6.0 / (x + 3.0), wide) / (x * 2.0 + 1.0) * bell;
  const Expr t = reciprocal(x * 0.4 + 1.0);
  return t * polynomial(t, narrow) * bell;
}

}  // namespace

UOp erf(const UOp& x, const OpsContext& ctx) {
  // erf(x) / x as a polynomial of x^2 <= 1, to 1.3e-9 and 2e-21; and beyond, log2(1 - erf(x)) as one of x, to 2e-8 of erf(x). It goes on
  // falling where the difference is nothing, so that infinity needs no care.
  static constexpr std::array<double, 7> narrow = {7.853860958e-05, -0.0008010193506, 0.005188327672, -0.02685381193,
                                                   0.1128358515,    -0.3761262582,    1.128379166};
  static constexpr std::array<double, 6> narrow_far = {-0.001669517785, 0.02139783671, -0.1281109426,
                                                       -0.9438688483,   -1.612386691,  -0.003778659195};
  static constexpr std::array<double, 14> wide = {
      -4.230945824295337817e-12, 8.70904512905310669e-11,    -1.216456005728345008e-9, 1.4792401209404813e-8,     -1.63646421581676153e-7,
      1.646204544146841894e-6,   -0.00001492564756751933213, 0.0001205533290288873541, -0.0008548327021934829596, 0.005223977625423298309,
      -0.02686617064512984081,   0.1128379167095512024,      -0.3761263890318375238,   1.128379167095512574};
  return known_of("erf", x, ctx, [](const Expr& v) {
    const Expr m = abs(v), z = v * v, near = v * (is_wide(v) ? polynomial(z, wide) : polynomial(z, narrow));
    const Expr left = is_wide(v) ? erfc_of_positive(m) : Expr(exp2(polynomial(m, narrow_far)));
    return ops::where(m < 1.0, near, with_sign(1.0 - left, v));
  });
}

UOp normal_cdf(const UOp& x) {
  const Expr v = x, half = erfc_of_positive(Expr(abs(v)) * (1 / std::numbers::sqrt2)) * 0.5;
  return known("normal_cdf", ops::where(v < 0, half, 1.0 - half), x);
}

}  // namespace tinygrad::ops
