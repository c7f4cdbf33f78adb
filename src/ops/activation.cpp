#include "ops/activation.h"

#include <cmath>
#include <numbers>

#include <tinygrad/errors.h>

#include "ops/elementwise.h"
#include "ops/expr.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// x <= 0 is x < this, in one comparison.
UOp smallest_positive(DType dtype) {
  if (!is_float(dtype)) return as_node(1, dtype);
  const auto [exponent_bits, mantissa_bits] = finfo(dtype);
  return constant(dtype, std::ldexp(1.0, 2 - (1 << (exponent_bits - 1)) - mantissa_bits));
}

/// x held between two bounds. Unlike that of clamp, the gradient at a bound is 0.
UOp between(const UOp& x, const Operand& min, const Operand& max, const OpsContext& ctx) {
  return ops::where(le(x, min, ctx), min, ops::where(ge(x, max, ctx), max, x, ctx), ctx);
}

}  // namespace

// A choice, not a MAX: the gradient at 0 is 0. NaN is not less than anything, and stays.
UOp relu(const UOp& x) { return ops::where(lt(x, smallest_positive(x.dtype())), 0, x); }
UOp relu6(const UOp& x) { return between(x, 0, 6, {}); }

UOp sigmoid(const UOp& x, const OpsContext& ctx) { return reciprocal(add(exp2(mul(to_float(x, ctx), -1 / std::numbers::ln2)), 1)); }
UOp logsigmoid(const UOp& x, const OpsContext& ctx) { return neg(softplus(neg(to_float(x, ctx)))); }

UOp hardsigmoid(const UOp& x, double alpha, double beta, const OpsContext& ctx) {
  return between(Expr(to_float(x, ctx)) * alpha + beta, 0, 1, ctx);
}
UOp hardswish(const UOp& x, const OpsContext& ctx) {
  const Expr v = to_float(x, ctx);
  return v * (Expr(relu6(v + 3)) * (1.0 / 6));
}
UOp hardtanh(const UOp& x, const Operand& min, const Operand& max, const OpsContext& ctx) { return between(x, min, max, ctx); }

UOp leaky_relu(const UOp& x, double neg_slope, const OpsContext& ctx) {
  const Expr v = to_float(x, ctx);
  return ops::where(v < 0, v * neg_slope, v);
}

UOp gelu(const UOp& x, Gelu form, const OpsContext& ctx) {
  const Expr v = to_float(x, ctx);
  if (form == Gelu::erf) return v * 0.5 * (Expr(erf(v * std::numbers::sqrt2 * 0.5)) + 1);
  return v * 0.5 * (Expr(tanh((v + v * v * v * 0.044715) * std::sqrt(2 / std::numbers::pi))) + 1);
}
UOp quick_gelu(const UOp& x, const OpsContext& ctx) {
  const Expr v = to_float(x, ctx);
  return v * sigmoid(v * 1.702);
}
UOp silu(const UOp& x, const OpsContext& ctx) {
  const Expr v = to_float(x, ctx);
  return v * sigmoid(v);
}

UOp elu(const UOp& x, double alpha, const OpsContext& ctx) {
  const Expr v = to_float(x, ctx);
  return Expr(relu(v)) - Expr(relu(1 - Expr(exp(v)))) * alpha;
}
UOp celu(const UOp& x, double alpha, const OpsContext& ctx) {
  if (alpha == 0) throw ValueError("celu: alpha is 0, expects another number");
  const Expr v = to_float(x, ctx);
  return Expr(maximum(v, 0)) + minimum((Expr(exp(v / alpha)) - 1) * alpha, 0);
}
UOp selu(const UOp& x, double alpha, double gamma, const OpsContext& ctx) {
  const Expr v = to_float(x, ctx);
  return Expr(ops::where(v < 0, (Expr(exp(v)) - 1) * alpha, v)) * gamma;
}

UOp softplus(const UOp& x, double beta, const OpsContext& ctx) {
  const Expr v = to_float(x, ctx), linear = beta > 0 ? maximum(v, 0) : minimum(v, 0);
  return linear + Expr(log1p(exp(-Expr(abs(v * beta))))) * (1 / beta);
}
UOp softsign(const UOp& x, const OpsContext& ctx) {
  const Expr v = to_float(x, ctx);
  return v / (Expr(abs(v)) + 1);
}
UOp mish(const UOp& x, const OpsContext& ctx) {
  const Expr v = to_float(x, ctx);
  return v * tanh(softplus(v));
}

}  // namespace tinygrad::ops
