#include "ops/known.h"

#include <cmath>
#include <numbers>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "ops/activation.h"
#include "uop/arg.h"

namespace tinygrad::ops {

namespace {

constexpr double ln2 = std::numbers::ln2;

double parameter(const UOp& known, size_t i = 0) { return const_value(known.src(2 + i))->as_double(); }

/// Beyond it powers of derivatives like 1/x are 0.
double horizon(const Expr& x) { return x.dtype() == DType::float64 ? 1e200 : 1e30; }

/// exp(-scale x^2), whose exponent is 0 before x^2 overflows.
Expr bell(const Expr& x, double scale) {
  const Expr c = held(x, 40);
  return exp2(c * c * (-scale / ln2));
}

/// 1 - tanh(x)^2 where that is small too.
Expr tanh_slope(const Expr& x) {
  const Expr e = exp2(minus_abs(x) * (2 / ln2)), r = reciprocal(e + 1);
  return e * r * r * 4;
}

// The derivatives of inverse functions, powers of polynomials, are known themselves: theirs would be inf * 0 where they are infinite.
Expr asin_slope(const Expr& x) { return known("asin'", reciprocal(Expr(sqrt(1 - x)) * sqrt(x + 1)), x); }
Expr acosh_slope(const Expr& x) {
  const Expr m = abs(x);
  return known("acosh'", reciprocal(Expr(sqrt(m - 1)) * sqrt(m + 1)), x);
}
Expr asinh_slope(const Expr& x) {
  const Expr m = abs(x), far = m > 1, w = ops::where(far, reciprocal(m), m), r = rsqrt(w * w + 1);
  return known("asinh'", ops::where(far, w * r, r), x);
}
Expr atan_slope(const Expr& x) {
  const Expr far = Expr(abs(x)) > 1, w = ops::where(far, reciprocal(x), x), q = w * w;
  return known("atan'", Expr(ops::where(far, q, 1)) / (q + 1), x);
}
Expr atanh_slope(const Expr& x) { return known("atanh'", Expr(reciprocal(1 - x)) * reciprocal(x + 1), x); }

/// (factor x u) u^n, n from 1 on, for u like a power of 1/x.
Expr times_powers(double factor, const Expr& x, const Expr& u, int n) {
  Expr out = held(x, horizon(x)) * u * factor;
  for (int i = 0; i < n; ++i) out = out * u;
  return out;
}

Expr swish_slope(const Expr& x, double a) {
  const Expr s = sigmoid(x * a);
  return s + held(x, 1000 / std::abs(a)) * a * s * sigmoid_complement(x * a);
}
Expr gelu_slope(const Expr& x) {
  const Expr c = held(x, 25), y = gelu_argument(c), s = sigmoid(y);
  const double k = 2 * std::sqrt(2 / std::numbers::pi);
  return s + c * (c * c * (3 * 0.044715 * k) + k) * s * sigmoid_complement(y);
}
Expr mish_slope(const Expr& x) {
  const MishFactor t = mish_factor(x);
  return t.value + held(x, 1000) * t.slope;
}

/// `u` is the function's value, `x` its argument, `node` has the parameters.
struct Known {
  const char* name;
  Expr (*derivative)(const Expr& u, const Expr& x, const UOp& node);
};

constexpr double sqrt_pi = 1 / std::numbers::inv_sqrtpi;

// clang-format off
constexpr Known table[] = {
  {"cos", [](const Expr&, const Expr& x, const UOp&) { return -Expr(sin(x)); }},
  {"tan", [](const Expr& u, const Expr&, const UOp&) { return u * u + 1; }},
  {"sinh", [](const Expr&, const Expr& x, const UOp&) { return Expr(cosh(x)); }},
  {"cosh", [](const Expr&, const Expr& x, const UOp&) { return Expr(sinh(x)); }},
  {"tanh", [](const Expr&, const Expr& x, const UOp&) { return tanh_slope(x); }},
  {"asin", [](const Expr&, const Expr& x, const UOp&) { return asin_slope(x); }},
  {"acos", [](const Expr&, const Expr& x, const UOp&) { return -asin_slope(x); }},
  {"atan", [](const Expr&, const Expr& x, const UOp&) { return atan_slope(x); }},
  {"asinh", [](const Expr&, const Expr& x, const UOp&) { return asinh_slope(x); }},
  {"acosh", [](const Expr&, const Expr& x, const UOp&) { return acosh_slope(x); }},
  {"atanh", [](const Expr&, const Expr& x, const UOp&) { return atanh_slope(x); }},
  {"asin'", [](const Expr& u, const Expr& x, const UOp&) { return times_powers(1, x, u, 2); }},
  {"acosh'", [](const Expr& u, const Expr& x, const UOp&) { return times_powers(-1, x, u, 2); }},
  {"asinh'", [](const Expr& u, const Expr& x, const UOp&) { return times_powers(-1, x, u, 2); }},
  {"atan'", [](const Expr& u, const Expr& x, const UOp&) { return times_powers(-2, x, u, 1); }},
  {"atanh'", [](const Expr& u, const Expr& x, const UOp&) { return times_powers(2, x, u, 1); }},
  {"erf", [](const Expr&, const Expr& x, const UOp&) { return bell(x, 1) * (2 / sqrt_pi); }},
  {"normal_cdf", [](const Expr&, const Expr& x, const UOp&) { return bell(x, 0.5) * (1 / (std::numbers::sqrt2 * sqrt_pi)); }},
  {"expm1", [](const Expr&, const Expr& x, const UOp&) { return Expr(exp(x)); }},
  {"sigmoid", [](const Expr& u, const Expr& x, const UOp&) { return u * sigmoid_complement(x); }},
  {"1-sigmoid", [](const Expr& u, const Expr& x, const UOp&) { return -u * sigmoid(x); }},
  {"softplus", [](const Expr&, const Expr& x, const UOp& node) { return Expr(sigmoid(x * parameter(node))); }},
  {"swish", [](const Expr&, const Expr& x, const UOp& node) { return swish_slope(x, parameter(node)); }},
  {"gelu", [](const Expr&, const Expr& x, const UOp&) { return gelu_slope(x); }},
  {"gelu_erf", [](const Expr&, const Expr& x, const UOp&) {
     return Expr(normal_cdf(x)) + held(x, 40) * bell(x, 0.5) * (1 / (std::numbers::sqrt2 * sqrt_pi)); }},
  {"mish", [](const Expr&, const Expr& x, const UOp&) { return mish_slope(x); }},
  {"softsign", [](const Expr&, const Expr& x, const UOp&) { return Expr(square(reciprocal(Expr(abs(x)) + 1))); }},
  {"log of probability", [](const Expr&, const Expr& x, const UOp& node) { return Expr(reciprocal(maximum(x, node.src(2)))); }},
  {"equal", [](const Expr& u, const Expr&, const UOp&) { return Expr(as_node(1, u.dtype())); }},
  {"root", [](const Expr& u, const Expr&, const UOp&) {  // so that its own derivative is 0 there too
     const Expr at_zero = ops::eq(u, 0);
     return Expr(ops::where(at_zero, 0, 0.5 / Expr(ops::where(at_zero, 1, u)))); }},
};
// clang-format on

}  // namespace

Expr held(const Expr& x, double limit) { return ops::where(x < -limit, -limit, ops::where(x > limit, limit, x)); }
Expr minus_abs(const Expr& x) { return ops::where(x < 0, x, -x); }

UOp known(std::string_view name, const UOp& value, const UOp& x, std::span<const UOp> parameters) {
  UOps sources{value, x};
  sources.append(parameters.begin(), parameters.end());
  return UOp(Op::KNOWN, value.dtype(), sources, TextArg{Symbol(name)});
}

Expr known_derivative(const UOp& u) {
  const std::string_view name = u.arg_as<TextArg>().text.str();
  for (const Known& k : table)
    if (name == k.name) return k.derivative(u, u.src(1), u);
  throw InternalError(fmt::format("gradient: no derivative is known of {}", name));
}

}  // namespace tinygrad::ops
