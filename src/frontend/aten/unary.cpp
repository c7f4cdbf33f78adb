// Functions of one number.
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

/// The argument as floats that several steps are computed with, and its result in the dtype that it has.
template <class F>
Results real(const Call& c, F f) {
  const Tensor x = c.tensor("self");
  const DType dtype = float_type(x.dtype());
  return one(f(x.cast(wide_type(dtype))).cast(dtype));
}
using Method = Tensor (Tensor::*)() const;
template <Method method>
Results real_method(const Call& c) {
  return real(c, [](const Tensor& x) { return (x.*method)(); });
}
template <Method method>
Results same_type(const Call& c) {
  return one((c.tensor("self").*method)());
}
/// Of integers they are these themselves.
template <Method method>
Results rounding(const Call& c) {
  const Tensor x = c.tensor("self");
  if (is_bool(x.dtype())) c.fail("not for bools");
  return one(is_float(x.dtype()) ? (x.*method)() : x);
}
Results round_decimals(const Call& c) {
  const Tensor x = c.tensor("self");
  const int64_t decimals = c.integer("decimals");
  if (!is_float(x.dtype())) return one(x);
  const double scale = std::pow(10.0, double(std::abs(decimals)));
  const Tensor wide = x.cast(wide_type(x.dtype()));
  return one((decimals < 0 ? (wide / scale).round() * scale : (wide * scale).round() / scale).cast(x.dtype()));
}

Results negative(const Call& c) {
  const Tensor x = c.tensor("self");
  if (is_bool(x.dtype())) c.fail("not for bools; use logical_not");
  return one(-x);
}
Results magnitude(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(is_bool(x.dtype()) || is_unsigned(x.dtype()) ? x : x.abs());
}
/// Of NaN it is 0.
Results sign(const Call& c) {
  const Tensor x = c.tensor("self");
  if (is_bool(x.dtype())) return one(x);
  if (is_float(x.dtype())) return one((x > 0).cast(x.dtype()) - (x < 0).cast(x.dtype()));
  return one(x.sign());
}
Results square(const Call& c) {
  const Tensor x = c.tensor("self");
  return one(is_bool(x.dtype()) ? x.cast(DType::int64) : x * x);
}

/// exp(x) - 1 by tanh(x / 2), and its series near 0.
Tensor expm1(const Tensor& x) {
  Tensor series = x.full_like(1);
  for (int i = 12; i > 1; --i) series = series * x / double(i) + 1;
  return (x.abs() < 0.5).where(x * series, x.exp() - 1);
}
/// t * exp(-z^2 + p(t)) for z = |x| and t = 2 / (2 + z), where p is the sum of Chebyshev polynomials in 2t - 1 that are fitted to
/// log(erfc(z)) + z^2 - log(t); by reflection below 0. No difference of numbers that are almost equal is taken.
Tensor erfc(const Tensor& given) {
  constexpr double terms[] = {-0.65132685989085472,    0.64196979235649026,     0.019476473204185836,    -0.0095615147868086316,
                              -0.00094659534448203687, 0.00036683949785276145,  4.2523324806907772e-5,   -2.0278578112534243e-5,
                              -1.6242900046470255e-6,  1.3036558355805232e-6,   1.5626441722066143e-8,   -8.5238095914926543e-8,
                              6.5290544390988515e-9,   5.0593434955514689e-9,   -9.9136415649303309e-10, -2.2736512229318359e-10,
                              9.6467911020155268e-11,  2.3940380830391147e-12,  -6.8860275264975534e-12, 8.9448792730907257e-13,
                              3.1309213993429581e-13,  -1.1270822361367252e-13, 3.8109052551892321e-16,  7.106097613609237e-15,
                              -1.5230282014571043e-15, -9.457494571291234e-17,  1.210237189224279e-16,   -2.816663087747177e-17};
  const Tensor x = given.cast(DType::float64), z = x.abs(), t = 2 / (z + 2), twice = t * 4 - 2;
  Tensor sum = x.zeros_like(), before = sum;
  for (size_t k = std::size(terms) - 1; k > 0; --k) before = std::exchange(sum, twice * sum - before + terms[k]);
  const Tensor above = t * ((twice * sum) * 0.5 - before + terms[0] - z * z).exp();
  return (x < 0).where(2 - above, above);
}

/// By Lanczos' sum of 9 terms with g = 7 (Numerical Recipes 6.1), and by reflection below one half.
Tensor lgamma(const Tensor& given) {
  constexpr double terms[] = {0.99999999999980993, 676.5203681218851,    -1259.1392167224028,   771.32342877765313,   -176.61502916214059,
                              12.507343278686905,  -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
  const Tensor x = given.cast(DType::float64);
  const Tensor is_low = x < 0.5, z = is_low.where(-x, x - 1);
  Tensor sum = z.full_like(terms[0]);
  for (int i = 1; i < 9; ++i) sum = sum + terms[i] / (z + i);
  const Tensor t = z + 7.5;
  const Tensor out = 0.5 * std::log(2 * std::numbers::pi) + (z + 0.5) * t.log() - t + sum.log();
  const Tensor fraction = x - x.floor();
  const Tensor reflected = std::log(std::numbers::pi) - (fraction * std::numbers::pi).sin().abs().log() - out;
  const Tensor pole = (x <= 0) & x.eq(x.floor());
  return (pole | x.isinf()).where(x.full_like(INFINITY), is_low.where(reflected, out));
}

/// By its asymptotic series beyond 6, where smaller ones are raised to, and by reflection below 0.
Tensor digamma(const Tensor& given) {
  const Tensor x = given.cast(DType::float64), is_low = x < 0.5;
  Tensor z = is_low.where(1 - x, x), out = z.zeros_like();
  for (int i = 0; i < 7; ++i) {
    const Tensor small = z < 7;
    out = small.where(out - z.reciprocal(), out);
    z = small.where(z + 1, z);
  }
  const Tensor r = (z * z).reciprocal();
  const Tensor series =
      r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760 - r / 12))))));
  out = out + z.log() - 0.5 / z - series;
  const Tensor fraction = x - x.trunc();
  const Tensor reflected = out - std::numbers::pi / (fraction * std::numbers::pi).tan();
  const Tensor whole = x.eq(x.trunc());
  const Tensor at_zero = -(x.full_like(INFINITY).copysign(x));
  return x.eq(0).where(at_zero, (is_low & whole).where(x.full_like(NAN), is_low.where(reflected, out)));
}

/// By Giles' polynomials (Approximating the erfinv function, 2010) and two steps of Newton's method in float64.
Tensor erfinv(const Tensor& given) {
  const Tensor x = given.cast(DType::float64);
  const Tensor w = -((1 - x) * (1 + x)).log(), near = w < 5, a = w - 2.5, b = w.sqrt() - 3;
  constexpr double inner[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                              -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  constexpr double outer[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                              -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  Tensor p = x.full_like(inner[0]), q = x.full_like(outer[0]);
  for (int i = 1; i < 9; ++i) {
    p = p * a + inner[i];
    q = q * b + outer[i];
  }
  Tensor y = near.where(p, q) * x;
  for (int i = 0; i < 2; ++i) y = y - (y.erf() - x) * (std::sqrt(std::numbers::pi) / 2) * (y * y).exp();
  const Tensor edge = x.abs().eq(1);
  return edge.where(x * INFINITY, (x.abs() > 1).where(x.full_like(NAN), y));
}

Results logit(const Call& c) {
  return real(c, [&](Tensor x) {
    if (c.has("eps")) {
      const double eps = c.number("eps");
      x = x.maximum(x.full_like(eps)).minimum(x.full_like(1 - eps));
    }
    return (x / (1 - x)).log();
  });
}

Results sinc(const Call& c) {
  return real(c, [](const Tensor& x) {
    const Tensor angle = x * std::numbers::pi;
    return x.eq(0).where(x.full_like(1), angle.sin() / angle);
  });
}

}  // namespace

std::vector<Row> unary_operators() {
  std::vector<Row> rows = {
      {"aten.neg.default(Tensor self)", negative},
      {"aten.negative.default(Tensor self)", negative},
      {"aten.positive.default(Tensor self)", [](const Call& c) { return one(c.tensor("self")); }},
      {"aten.abs.default(Tensor self)", magnitude},
      {"aten.absolute.default(Tensor self)", magnitude},
      {"aten.sign.default(Tensor self)", sign},
      {"aten.sgn.default(Tensor self)", sign},
      {"aten.square.default(Tensor self)", square},
      {"aten.floor.default(Tensor self)", rounding<&Tensor::floor>},
      {"aten.ceil.default(Tensor self)", rounding<&Tensor::ceil>},
      {"aten.trunc.default(Tensor self)", rounding<&Tensor::trunc>},
      {"aten.fix.default(Tensor self)", rounding<&Tensor::trunc>},
      {"aten.round.default(Tensor self)", rounding<&Tensor::round>},
      {"aten.round.decimals(Tensor self, *, int decimals)", round_decimals},
      {"aten.frac.default(Tensor self)", [](const Call& c) { return one(c.tensor("self") - c.tensor("self").trunc()); }},
      {"aten.logit.default(Tensor self, float? eps=None)", logit},
      {"aten.special_logit.default(Tensor self, float? eps=None)", logit},
      {"aten.sinc.default(Tensor self)", sinc},
      {"aten.conj.default(Tensor self)", [](const Call& c) { return one(c.tensor("self")); }},
  };
  const auto method = [&](std::string_view schema, Results (*run)(const Call&)) { rows.push_back({schema, run}); };
  method("aten.sqrt.default(Tensor self)", real_method<&Tensor::sqrt>);
  method("aten.rsqrt.default(Tensor self)", real_method<&Tensor::rsqrt>);
  method("aten.reciprocal.default(Tensor self)", real_method<&Tensor::reciprocal>);
  method("aten.exp.default(Tensor self)", real_method<&Tensor::exp>);
  method("aten.exp2.default(Tensor self)", real_method<&Tensor::exp2>);
  method("aten.special_exp2.default(Tensor self)", real_method<&Tensor::exp2>);
  method("aten.log.default(Tensor self)", real_method<&Tensor::log>);
  method("aten.log2.default(Tensor self)", real_method<&Tensor::log2>);
  method("aten.log10.default(Tensor self)", real_method<&Tensor::log10>);
  method("aten.sin.default(Tensor self)", real_method<&Tensor::sin>);
  method("aten.cos.default(Tensor self)", real_method<&Tensor::cos>);
  method("aten.tan.default(Tensor self)", real_method<&Tensor::tan>);
  method("aten.asin.default(Tensor self)", real_method<&Tensor::asin>);
  method("aten.arcsin.default(Tensor self)", real_method<&Tensor::asin>);
  method("aten.acos.default(Tensor self)", real_method<&Tensor::acos>);
  method("aten.arccos.default(Tensor self)", real_method<&Tensor::acos>);
  method("aten.atan.default(Tensor self)", real_method<&Tensor::atan>);
  method("aten.arctan.default(Tensor self)", real_method<&Tensor::atan>);
  method("aten.sinh.default(Tensor self)", real_method<&Tensor::sinh>);
  method("aten.cosh.default(Tensor self)", real_method<&Tensor::cosh>);
  method("aten.tanh.default(Tensor self)", real_method<&Tensor::tanh>);
  method("aten.asinh.default(Tensor self)", real_method<&Tensor::asinh>);
  method("aten.acosh.default(Tensor self)", real_method<&Tensor::acosh>);
  method("aten.atanh.default(Tensor self)", real_method<&Tensor::atanh>);
  method("aten.erf.default(Tensor self)", real_method<&Tensor::erf>);
  method("aten.special_erf.default(Tensor self)", real_method<&Tensor::erf>);
  method("aten.sigmoid.default(Tensor self)", real_method<&Tensor::sigmoid>);
  method("aten.special_expit.default(Tensor self)", real_method<&Tensor::sigmoid>);
  const auto function = [&](std::string_view schema, Tensor (*f)(const Tensor&)) {
    rows.push_back({schema, [f](const Call& c) { return real(c, f); }});
  };
  function("aten.log1p.default(Tensor self)", log1p);
  function("aten.expm1.default(Tensor self)", expm1);
  function("aten.special_log1p.default(Tensor self)", log1p);
  function("aten.special_expm1.default(Tensor self)", expm1);
  function("aten.erfc.default(Tensor self)", erfc);
  function("aten.special_erfc.default(Tensor self)", erfc);
  function("aten.lgamma.default(Tensor self)", lgamma);
  function("aten.digamma.default(Tensor self)", digamma);
  function("aten.erfinv.default(Tensor self)", erfinv);
  function("aten.deg2rad.default(Tensor self)", [](const Tensor& x) { return x * (std::numbers::pi / 180); });
  function("aten.rad2deg.default(Tensor self)", [](const Tensor& x) { return x * (180 / std::numbers::pi); });
  return rows;
}

}  // namespace tinygrad::aten
