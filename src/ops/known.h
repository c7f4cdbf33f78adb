#pragma once
/// Functions whose derivatives are written down instead of taken from how their values are computed, which would be inf * 0 where an
/// intermediate value overflows, or the derivative of an approximation.

#include "ops/expr.h"
#include "uop/build.h"

namespace tinygrad::ops {

/// KNOWN(value, x, parameter...; name). Under the name "equal" it is x, of which `value` is another formula that suits better, but for
/// derivatives.
///  `value` has the shape and dtype of x, a float of at least 32 bits, and is what known_derivative()
/// has under that name.
UOp known(std::string_view name, const UOp& value, const UOp& x, std::span<const UOp> parameters = {});
/// The derivative of a KNOWN by its x, at x. It has the right derivatives again.
Expr known_derivative(const UOp& known);

/// A known function of x, with numbers for its parameters.
template <class F>
UOp known_of(std::string_view name, const UOp& x, const OpsContext& ctx, F&& f, std::initializer_list<double> parameters = {}) {
  return in_float32(x, ctx, [&](const Expr& v) {
    UOps nodes;
    for (const double p : parameters) nodes.push_back(constant(v.dtype(), p));
    return known(name, f(v), v, nodes);
  });
}

// What derivatives are made of; x is a float of at least 32 bits.
/// 1 - sigmoid(x), where that is small too.
UOp sigmoid_complement(const UOp& x);
/// The distribution function of the standard normal distribution.
UOp normal_cdf(const UOp& x);

/// x within [-limit, limit]. Derivatives use it where a factor that is 0 beyond the limit meets one that may be infinite.
Expr held(const Expr& x, double limit);
/// -|x|, with the derivative -1 at 0.
Expr minus_abs(const Expr& x);
/// 2 z, where gelu(x) = x * sigmoid(2 z) by the tanh formula.
Expr gelu_argument(const Expr& x);
/// tanh(softplus(x)) and its derivative.
struct MishFactor {
  Expr value, slope;
};
MishFactor mish_factor(const Expr& x);

}  // namespace tinygrad::ops
