#pragma once
/// Formulas of this room, written as on paper: operators that promote and broadcast, unlike those of uop/build.h.

#include "ops/elementwise.h"
#include "uop/build.h"

namespace tinygrad::ops {

/// A node whose operators are the builders of elementwise.h. For the inside of builders: interfaces use UOp.
class Expr : public UOp {
 public:
  Expr(UOp node) : UOp(std::move(node)) {}
};

/// An operand of an Expr's operators: a node or a number.
template <class T>
concept ExprOperand =
    std::convertible_to<const T&, const UOp&> || std::is_arithmetic_v<T> || std::same_as<T, SInt> || std::same_as<T, Operand>;

#define TG_EXPR_OPERATOR(symbol, function)          \
  template <ExprOperand B>                          \
  Expr operator symbol(const Expr& a, const B& b) { \
    return function(a, b);                          \
  }                                                 \
  template <ExprOperand A>                          \
    requires(!std::same_as<A, Expr>)                \
  Expr operator symbol(const A& a, const Expr& b) { \
    return function(a, b);                          \
  }

TG_EXPR_OPERATOR(+, add)
TG_EXPR_OPERATOR(-, sub)
TG_EXPR_OPERATOR(*, mul)
TG_EXPR_OPERATOR(/, div)
TG_EXPR_OPERATOR(<, lt)
TG_EXPR_OPERATOR(>, gt)
TG_EXPR_OPERATOR(<=, le)
TG_EXPR_OPERATOR(>=, ge)
TG_EXPR_OPERATOR(&, bitwise_and)
TG_EXPR_OPERATOR(|, bitwise_or)
TG_EXPR_OPERATOR(^, bitwise_xor)
#undef TG_EXPR_OPERATOR
inline Expr operator-(const Expr& a) { return neg(a); }

/// x in at least float32, what narrower floats are computed in when several steps make one result.
inline UOp to_float32(const UOp& x, const OpsContext& ctx = {}) {
  const UOp v = to_float(x, ctx);
  return tinygrad::cast(v, least_upper_dtype(v.dtype(), DType::float32));
}

/// f(x) in at least float32, rounded to x's dtype once.
template <class F>
UOp in_float32(const UOp& x, const OpsContext& ctx, F&& f) {
  return tinygrad::cast(f(Expr(to_float32(x, ctx))), least_upper_float(x.dtype(), ctx.default_float));
}

}  // namespace tinygrad::ops
