#include "ops/activation.h"

#include <cmath>
#include <numbers>

#include <tinygrad/errors.h>

#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/known.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// x <= 0 is x < this, in one comparison.
UOp smallest_positive(DType dtype) {
  if (!is_float(dtype)) return as_node(1, dtype);
  return constant(Scalar::from_storage_bits(1, dtype));
}

/// x held between two bounds. Unlike that of clamp, the gradient at a bound is 0.
UOp between(const UOp& x, const Operand& min, const Operand& max, const OpsContext& ctx) {
  return ops::where(le(x, min, ctx), min, ops::where(ge(x, max, ctx), max, x, ctx), ctx);
}

}  // namespace

// A choice, not a MAX: the gradient at 0 is 0. NaN is not less than anything, and stays.
UOp relu(const UOp& x) { return ops::where(lt(x, smallest_positive(x.dtype())), 0, x); }
UOp relu6(const UOp& x) { return between(x, 0, 6, {}); }

namespace {

/// 1 / (1 + e^-|x|) and e^-|x| times that. Neither overflows, and each keeps its digits where it is small.
std::pair<Expr, Expr> logistic_pair(const Expr& x) {
  const Expr e = exp(minus_abs(x)), large = alu(Op::RECIPROCAL, {e + 1});
  return {large, e * large};
}

}  // namespace

UOp sigmoid(const UOp& x, const OpsContext& ctx) {
  return known_of("sigmoid", x, ctx, [](const Expr& v) {
    const auto [large, small] = logistic_pair(v);
    return ops::where(v < 0, small, large);
  });
}
UOp sigmoid_complement(const UOp& x) {
  const auto [large, small] = logistic_pair(x);
  return known("1-sigmoid", ops::where(lt(x, 0), large, small), x);
}
UOp logsigmoid(const UOp& x, const OpsContext& ctx) { return neg(softplus(neg(to_float(x, ctx)))); }

UOp hardsigmoid(const UOp& x, double alpha, double beta, const OpsContext& ctx) {
  return in_float32(x, ctx, [&](const Expr& v) { return between(v * alpha + beta, 0, 1, {}); });
}
UOp hardswish(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return v * (Expr(relu6(v + 3)) * (1.0 / 6)); });
}
UOp hardtanh(const UOp& x, const Operand& min, const Operand& max, const OpsContext& ctx) { return between(x, min, max, ctx); }

UOp leaky_relu(const UOp& x, double neg_slope, const OpsContext& ctx) {
  return in_float32(x, ctx, [&](const Expr& v) { return ops::where(v > 0, v, v * neg_slope); });
}

Expr gelu_argument(const Expr& x) {
  const double k = 2 * std::sqrt(2 / std::numbers::pi);
  return x * (x * x * (0.044715 * k) + k);
}

UOp gelu(const UOp& x, GeluForm form, const OpsContext& ctx) {
  if (form == GeluForm::erf) return known_of("gelu_erf", x, ctx, [](const Expr& v) { return v * normal_cdf(v); });
  // 0.5 (1 + tanh(z)) is sigmoid(2z), which keeps its digits where it is small.
  return known_of("gelu", x, ctx, [](const Expr& v) { return v * sigmoid(gelu_argument(v)); });
}

namespace {

UOp swish(const UOp& x, double a, const OpsContext& ctx) {
  return known_of("swish", x, ctx, [a](const Expr& v) { return v * sigmoid(a == 1 ? v : v * a); }, {a});
}

}  // namespace

UOp quick_gelu(const UOp& x, const OpsContext& ctx) { return swish(x, 1.702, ctx); }
UOp silu(const UOp& x, const OpsContext& ctx) { return swish(x, 1, ctx); }

namespace {

/// x where it is positive, else scale * (e^(x * rate) - 1), whose exponential sees no positive x: it might overflow.
UOp exponential_below_zero(const UOp& x, double scale, double rate, double gamma, const OpsContext& ctx) {
  return in_float32(x, ctx, [&](const Expr& v) {
    const Expr positive = v > 0, below = Expr(ops::where(positive, 0, v)) * rate;
    return Expr(ops::where(positive, v, Expr(expm1(below)) * scale)) * gamma;
  });
}

}  // namespace

UOp elu(const UOp& x, double alpha, const OpsContext& ctx) { return exponential_below_zero(x, alpha, 1, 1, ctx); }
UOp celu(const UOp& x, double alpha, const OpsContext& ctx) {
  if (alpha == 0) throw ValueError("celu: alpha is 0, expects another number");
  return exponential_below_zero(x, alpha, 1 / alpha, 1, ctx);
}
UOp selu(const UOp& x, double alpha, double gamma, const OpsContext& ctx) { return exponential_below_zero(x, alpha, 1, gamma, ctx); }

UOp softplus(const UOp& x, double beta, const OpsContext& ctx) {
  return known_of("softplus", x, ctx,
                  [beta](const Expr& v) {
                    const Expr linear = beta > 0 ? maximum(v, 0) : minimum(v, 0);
                    return linear + Expr(log1p(exp(minus_abs(v * beta)))) * (1 / beta);
                  },
                  {beta});
}
UOp softsign(const UOp& x, const OpsContext& ctx) {
  return known_of("softsign", x, ctx, [](const Expr& v) { return v / (Expr(abs(v)) + 1); });
}

MishFactor mish_factor(const Expr& x) {
  // With w = e^x it is w (w + 2) / (w (w + 2) + 2); above 0 both are divided by w^2.
  const Expr below = x < 0, e = exp(minus_abs(x)), n = ops::where(below, e * (e + 2), e * 2 + 1),
             square_or = ops::where(below, 2, e * e * 2);
  const Expr r = reciprocal(n + square_or);
  return {n * r, Expr(ops::where(below, e, e * e)) * (e + 1) * r * r * 4};
}
UOp mish(const UOp& x, const OpsContext& ctx) {
  return known_of("mish", x, ctx, [](const Expr& v) { return v * mish_factor(v).value; });
}

}  // namespace tinygrad::ops
