// Every function of one float, its derivative and the derivative of that, against closed forms in long double: over all exponents and
// signs, at zeros, infinities and NaN, in all float dtypes. docs/numerics.md states the bounds. 400 numbers a function and dtype,
// 8,000 with TG_TEST_SCALE=20.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include <tinygrad/tinygrad.h>

#include "support/test_scale.h"
#include "support/ulps.h"

namespace tinygrad {
namespace {

using L = long double;

constexpr L pi = std::numbers::pi_v<L>, ln2 = std::numbers::ln2_v<L>, sqrt2 = std::numbers::sqrt2_v<L>;
constexpr L nan = std::numeric_limits<L>::quiet_NaN();
constexpr uint64_t seed = 5;

/// What an error may be, in units in the last place of the result: `ulps`, and `by_exponent` times the logarithm of the result, where an
/// exponent is computed and its rounding errors grow with it; near zeros of a function `absolute` times the dtype's precision.
struct Bound {
  double ulps, by_exponent = 0, absolute = 0;
};

struct Unary {
  const char* name;
  Tensor (*ours)(const Tensor&);
  L (*exact[3])(L);  ///< the function and its first two derivatives
  Bound bound[3];
};

L logistic(L x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
L logistic1(L x) { return logistic(x) * logistic(-x); }
L logistic2(L x) { return logistic1(x) * -std::tanh(x / 2); }
/// 0 where the other factor is, whatever this one.
L times(L zero, L other) { return zero == 0 ? 0 : zero * other; }
L sech2(L x) { return 1 / (std::cosh(x) * std::cosh(x)); }
L normal(L x) { return std::exp(-x * x / 2) / std::sqrt(2 * pi); }
L swish1(L x, L a) { return logistic(a * x) + times(logistic1(a * x), a * x); }
L swish2(L x, L a) { return a * (2 * logistic1(a * x) + times(logistic2(a * x), a * x)); }

// x * logistic(y(x)) of gelu's tanh formula.
constexpr L gelu_k = 1.5957691216057307117597842397375L, gelu_c = 0.044715L;
L gelu_y(L x) { return gelu_k * (x + gelu_c * x * x * x); }
L gelu_y1(L x) { return gelu_k * (1 + 3 * gelu_c * x * x); }
L gelu0(L x) { return x * logistic(gelu_y(x)); }
L gelu1(L x) { return logistic(gelu_y(x)) + times(logistic1(gelu_y(x)), x * gelu_y1(x)); }
L gelu2(L x) {
  const L s1 = logistic1(gelu_y(x)), s2 = logistic2(gelu_y(x));
  return times(s1, 2 * gelu_y1(x) + x * gelu_k * 6 * gelu_c * x) + times(s2, x * gelu_y1(x) * gelu_y1(x));
}

// tanh(softplus(x)) with w = e^x, or e^-x above 0.
L mish_t(L x) {
  const L w = std::exp(-std::abs(x));
  return x < 0 ? w * (w + 2) / (w * (w + 2) + 2) : (1 + 2 * w) / (1 + 2 * w + 2 * w * w);
}
L mish_d(L x) {
  const L w = std::exp(-std::abs(x)), d = x < 0 ? w * w + 2 * w + 2 : 1 + 2 * w + 2 * w * w;
  return 4 * (x < 0 ? w : w * w) * (1 + w) / (d * d);
}
/// t'' = t' (1 + w / (1 + w) - 2 w (2w + 2) / D).
L mish_d2(L x) {
  const L w = std::exp(-std::abs(x)), d = x < 0 ? w * w + 2 * w + 2 : 1 + 2 * w + 2 * w * w;
  const L up = x < 0 ? w / (1 + w) : 1 / (1 + w), down = x < 0 ? 4 * w * (w + 1) / d : 4 * (1 + w) / d;
  return mish_d(x) * (1 + up - down);
}

L elu0(L x, L alpha, L rate) { return x > 0 ? x : alpha * std::expm1(x * rate); }
L elu1(L x, L alpha, L rate) { return x > 0 ? 1 : alpha * rate * std::exp(x * rate); }
L elu2(L x, L alpha, L rate) { return x > 0 ? 0 : alpha * rate * rate * std::exp(x * rate); }
L step(L x, L below, L above) { return std::isnan(x) ? nan : x > 0 ? above : below; }
L acosh1(L x) { return 1 / (std::sqrt(std::abs(x) - 1) * std::sqrt(std::abs(x) + 1)); }
L tan_of(L x) { return std::isinf(x) ? nan : std::tan(x); }

#define TG_OURS(expression) [](const Tensor& x) { return expression; }
#define TG_EXACT(expression) []([[maybe_unused]] L x) -> L { return expression; }

// clang-format off
const Unary functions[] = {
  {"neg", TG_OURS(-x), {TG_EXACT(-x), TG_EXACT(-1), TG_EXACT(0)}, {{0}, {0}, {0}}},
  {"abs", TG_OURS(x.abs()), {TG_EXACT(std::abs(x)), TG_EXACT(x > 0 ? 1 : x < 0 ? -1 : 0), TG_EXACT(0)}, {{0}, {0}, {0}}},
  {"square", TG_OURS(x.square()), {TG_EXACT(x * x), TG_EXACT(2 * x), TG_EXACT(2)}, {{0.5}, {0}, {0}}},
  {"reciprocal", TG_OURS(x.reciprocal()), {TG_EXACT(1 / x), TG_EXACT(-1 / (x * x)), TG_EXACT(2 / (x * x * x))}, {{0.5}, {2}, {3}}},
  {"sqrt", TG_OURS(x.sqrt()), {TG_EXACT(std::sqrt(x)), TG_EXACT(0.5L / std::sqrt(x)), TG_EXACT(-0.25L / std::sqrt(x) / std::sqrt(x) / std::sqrt(x))}, {{0.5}, {1.5}, {4}}},
  {"rsqrt", TG_OURS(x.rsqrt()), {TG_EXACT(1 / std::sqrt(x)), TG_EXACT(-0.5L / std::sqrt(x) / std::sqrt(x) / std::sqrt(x)), TG_EXACT(0.75L / (std::sqrt(x) * x * x))}, {{1.5}, {4}, {8}}},
  {"exp", TG_OURS(x.exp()), {TG_EXACT(std::exp(x)), TG_EXACT(std::exp(x)), TG_EXACT(std::exp(x))}, {{2}, {2.5}, {2.5}}},
  {"exp2", TG_OURS(x.exp2()), {TG_EXACT(std::exp2(x)), TG_EXACT(std::exp2(x) * ln2), TG_EXACT(std::exp2(x) * ln2 * ln2)}, {{1.5}, {3}, {4}}},
  {"log", TG_OURS(x.log()), {TG_EXACT(std::log(x)), TG_EXACT(1 / x), TG_EXACT(-1 / (x * x))}, {{3}, {2}, {4}}},
  {"log2", TG_OURS(x.log2()), {TG_EXACT(std::log2(x)), TG_EXACT(1 / (x * ln2)), TG_EXACT(-1 / (x * x * ln2))}, {{2.5}, {2}, {4}}},
  {"log10", TG_OURS(x.log10()), {TG_EXACT(std::log10(x)), TG_EXACT(1 / (x * std::log(10.0L))), TG_EXACT(-1 / (x * x * std::log(10.0L)))}, {{4}, {3}, {4}}},
  {"sin", TG_OURS(x.sin()), {TG_EXACT(std::sin(x)), TG_EXACT(std::cos(x)), TG_EXACT(-std::sin(x))}, {{2.5}, {3, 0, 4}, {3, 0, 4}}},
  {"cos", TG_OURS(x.cos()), {TG_EXACT(std::cos(x)), TG_EXACT(-std::sin(x)), TG_EXACT(-std::cos(x))}, {{3, 0, 4}, {3}, {3, 0, 4}}},
  {"tan", TG_OURS(x.tan()), {TG_EXACT(tan_of(x)), TG_EXACT(1 + tan_of(x) * tan_of(x)), TG_EXACT(2 * tan_of(x) * (1 + tan_of(x) * tan_of(x)))}, {{8}, {16}, {24}}},
  {"asin", TG_OURS(x.asin()), {TG_EXACT(std::asin(x)), TG_EXACT(1 / std::sqrt((1 - x) * (1 + x))), TG_EXACT(x / (std::sqrt((1 - x) * (1 + x)) * ((1 - x) * (1 + x))))}, {{2.5}, {2.5}, {8}}},
  {"acos", TG_OURS(x.acos()), {TG_EXACT(std::acos(x)), TG_EXACT(-1 / std::sqrt((1 - x) * (1 + x))), TG_EXACT(-x / (std::sqrt((1 - x) * (1 + x)) * ((1 - x) * (1 + x))))}, {{2.5}, {2.5}, {8}}},
  {"atan", TG_OURS(x.atan()), {TG_EXACT(std::atan(x)), TG_EXACT(1 / (1 + x * x)), TG_EXACT(std::isinf(x) ? 0 : -2 * x / ((1 + x * x) * (1 + x * x)))}, {{2.5}, {4}, {8}}},
  {"sinh", TG_OURS(x.sinh()), {TG_EXACT(std::sinh(x)), TG_EXACT(std::cosh(x)), TG_EXACT(std::sinh(x))}, {{6}, {6}, {6}}},
  {"cosh", TG_OURS(x.cosh()), {TG_EXACT(std::cosh(x)), TG_EXACT(std::sinh(x)), TG_EXACT(std::cosh(x))}, {{6}, {6}, {6}}},
  {"tanh", TG_OURS(x.tanh()), {TG_EXACT(std::tanh(x)), TG_EXACT(sech2(x)), TG_EXACT(times(sech2(x), -2 * std::tanh(x)))}, {{4}, {6}, {10, 0, 4}}},
  {"asinh", TG_OURS(x.asinh()), {TG_EXACT(std::asinh(x)), TG_EXACT(1 / std::sqrt(1 + x * x)), TG_EXACT(std::isinf(x) ? 0 : -x / (std::sqrt(1 + x * x) * (1 + x * x)))}, {{3}, {3}, {8}}},
  {"acosh", TG_OURS(x.acosh()), {TG_EXACT(std::acosh(x)), TG_EXACT(acosh1(x)), TG_EXACT(std::isinf(x) ? 0 : -x * acosh1(x) * acosh1(x) * acosh1(x))}, {{3}, {3}, {8}}},
  {"atanh", TG_OURS(x.atanh()), {TG_EXACT(std::atanh(x)), TG_EXACT(1 / ((1 - x) * (1 + x))), TG_EXACT(std::isinf(x) ? 0 : 2 * x / (((1 - x) * (1 + x)) * ((1 - x) * (1 + x))))}, {{3}, {3}, {6}}},
  {"erf", TG_OURS(x.erf()), {TG_EXACT(std::erf(x)), TG_EXACT(2 / std::sqrt(pi) * std::exp(-x * x)), TG_EXACT(times(std::exp(-x * x), -4 * x / std::sqrt(pi)))}, {{3}, {4, 1}, {6, 1}}},
  {"sigmoid", TG_OURS(x.sigmoid()), {TG_EXACT(logistic(x)), TG_EXACT(logistic1(x)), TG_EXACT(logistic2(x))}, {{3}, {6}, {10, 0, 4}}},
  {"logsigmoid", TG_OURS(x.logsigmoid()), {TG_EXACT(x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x))), TG_EXACT(logistic(-x)), TG_EXACT(-logistic1(x))}, {{4}, {4}, {6}}},
  {"softplus", TG_OURS(x.softplus()), {TG_EXACT(x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x))), TG_EXACT(logistic(x)), TG_EXACT(logistic1(x))}, {{4}, {4}, {6}}},
  {"gelu", TG_OURS(x.gelu()), {gelu0, gelu1, gelu2}, {{6, 1.5}, {12, 1.5, 8}, {24, 1.5, 16}}},
  {"gelu_erf", TG_OURS(x.gelu(GeluForm::erf)), {TG_EXACT(x * std::erfc(-x / sqrt2) / 2), TG_EXACT(std::erfc(-x / sqrt2) / 2 + times(normal(x), x)), TG_EXACT(times(normal(x), 2 - x * x))}, {{6, 3}, {12, 3, 8}, {24, 4, 16}}},
  {"quick_gelu", TG_OURS(x.quick_gelu()), {TG_EXACT(x * logistic(1.702L * x)), TG_EXACT(swish1(x, 1.702L)), TG_EXACT(swish2(x, 1.702L))}, {{6, 1}, {12, 1, 8}, {24, 1, 16}}},
  {"silu", TG_OURS(x.silu()), {TG_EXACT(x * logistic(x)), TG_EXACT(swish1(x, 1)), TG_EXACT(swish2(x, 1))}, {{6, 1}, {12, 1, 8}, {24, 1, 16}}},
  {"mish", TG_OURS(x.mish()), {TG_EXACT(x * mish_t(x)), TG_EXACT(mish_t(x) + times(mish_d(x), x)), TG_EXACT(2 * mish_d(x) + times(mish_d2(x), x))}, {{6, 1}, {16, 1.5, 8}, {32, 1.5, 32}}},
  {"elu", TG_OURS(x.elu()), {TG_EXACT(elu0(x, 1, 1)), TG_EXACT(elu1(x, 1, 1)), TG_EXACT(elu2(x, 1, 1))}, {{4}, {3}, {3}}},
  {"celu", TG_OURS(x.celu(2)), {TG_EXACT(elu0(x, 2, 0.5L)), TG_EXACT(elu1(x, 2, 0.5L)), TG_EXACT(elu2(x, 2, 0.5L))}, {{4}, {3}, {3}}},
  {"selu", TG_OURS(x.selu()), {TG_EXACT(1.0507L * elu0(x, 1.67326L, 1)), TG_EXACT(1.0507L * elu1(x, 1.67326L, 1)), TG_EXACT(1.0507L * elu2(x, 1.67326L, 1))}, {{5}, {5}, {5}}},
  {"softsign", TG_OURS(x.softsign()), {TG_EXACT(x / (1 + std::abs(x))), TG_EXACT(1 / ((1 + std::abs(x)) * (1 + std::abs(x)))), TG_EXACT(x == 0 ? 0 : -std::copysign(2 / ((1 + std::abs(x)) * (1 + std::abs(x)) * (1 + std::abs(x))), x))}, {{2}, {3}, {6}}},
  {"relu", TG_OURS(x.relu()), {TG_EXACT(std::isnan(x) ? nan : x > 0 ? x : 0), TG_EXACT(x > 0 ? 1 : 0), TG_EXACT(0)}, {{0}, {0}, {0}}},
  {"relu6", TG_OURS(x.relu6()), {TG_EXACT(std::isnan(x) ? nan : x > 0 ? std::min(x, L(6)) : 0), TG_EXACT(x > 0 && x < 6 ? 1 : 0), TG_EXACT(0)}, {{0}, {0}, {0}}},
  {"leaky_relu", TG_OURS(x.leaky_relu(0.25)), {TG_EXACT(x > 0 ? x : x / 4), TG_EXACT(step(x, 0.25L, 1)), TG_EXACT(0)}, {{0.5}, {0}, {0}}},
  {"hardswish", TG_OURS(x.hardswish()), {TG_EXACT(x * (std::isnan(x) ? nan : x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6)), TG_EXACT(x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5L), TG_EXACT(x > -3 && x < 3 ? L(1) / 3 : 0)}, {{3, 0, 4}, {3, 0, 4}, {2}}},
};
// clang-format on

constexpr DType dtypes[] = {DType::fp8e4m3, DType::fp8e5m2,  DType::fp8e4m3fnuz, DType::fp8e5m2fnuz,
                            DType::float16, DType::bfloat16, DType::float32,     DType::float64};

/// What exponentials are off, for each unit of their exponent, where products are rounded before they are added to.
double by_exponent_without_fma() {
#ifdef __x86_64__
  return __builtin_cpu_supports("fma") ? 0 : 1.5;
#else
  return 0;
#endif
}

/// As what functions of `d` are computed in.
double float_or_double(L x, DType d) { return d == DType::float64 ? double(x) : double(float(x)); }

class UnarySweep : public testing::TestWithParam<Unary> {};

/// How far off `got` is, as a multiple of what is allowed.
double excess(double got, L exact, DType d, const Bound& bound, bool value) {
  const double rounded = Scalar::from_double(double(exact), d).as_double();
  if (rounded == 0 && got == 0 && !value) return 0;  // derivatives that are 0 have either sign
  const FloatInfo info = finfo(d);
  const double precision = std::ldexp(1.0, -info.mantissa_bits);
  if (std::isfinite(rounded) && std::isfinite(got) && std::abs(got - exact) <= bound.absolute * precision) return 0;
  // Narrow results are rounded from float32 ones.
  const double logarithm = exact == 0 || !std::isfinite(exact) ? 0 : double(std::abs(std::log(std::abs(exact))));
  const double wide = bound.ulps + (bound.by_exponent + by_exponent_without_fma()) * std::min(logarithm, 800.0);
  const double allowed = bitsize(d) >= 32 ? std::max(wide, 0.5) : 0.5 + wide * std::ldexp(1.0, info.mantissa_bits - 23);
  const double off = test::ulps(got, exact, d);
  return off <= allowed + 1e-6 ? 0 : off / allowed;
}

TEST_P(UnarySweep, IsRightWithItsDerivatives) {
  const Unary& f = GetParam();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const DType d : dtypes) {
    const std::vector<double> samples = test::float_samples(d, seed, 200 * size_t(test::test_scale()));
    const Tensor x = Tensor(samples, {.dtype = DType::float64}).cast(d).realize(), one = Tensor::ones(x.shape(), {.dtype = d});
    const Tensor y = f.ours(x), first = y.gradient({x}, one)[0], second = first.gradient({x}, one)[0];
    Tensor::realize(std::vector<Tensor>{y, first, second});
    EXPECT_EQ(y.dtype(), d);
    const auto at = x.cast(DType::float64).tolist<double>();
    const Tensor* results[] = {&y, &first, &second};
    for (int order = 0; order < 3; ++order) {
      const auto got = results[order]->cast(DType::float64).tolist<double>();
      double worst = 0;
      size_t worst_at = 0, count = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        // Where a function overflows so do its derivatives.
        if (order > 0 && (std::isnan(at[i]) || std::isinf(float_or_double(f.exact[0](at[i]), d)))) continue;
        const L exact = f.exact[order](at[i]);
        const double over = excess(got[i], exact, d, f.bound[order], order == 0);
        count += over > 0;
        if (over > worst) worst = over, worst_at = i;
      }
      EXPECT_EQ(worst, 0) << f.name << " order " << order << " " << repr(d) << ": " << count << " of " << got.size() << ", the worst at "
                          << at[worst_at] << ": " << got[worst_at] << ", not " << double(f.exact[order](at[worst_at])) << ", "
                          << test::ulps(got[worst_at], f.exact[order](at[worst_at]), d) << " ulps";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnarySweep, testing::ValuesIn(functions), [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace tinygrad
