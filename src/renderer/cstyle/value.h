#pragma once
#include <optional>
#include <string>
#include <vector>

#include "dtype/scalar.h"
#include "renderer/cstyle/expression.h"
#include "renderer/cstyle/prelude.h"
#include "uop/op.h"

namespace tinygrad::renderer::cstyle {

/// What an instruction gives, as an expression.
///
/// A vector of bools is a mask: a vector of signed integers, 0 or -1, as comparisons give and as `?:` takes. Its elements are as wide as
/// those compared.
struct Value {
  Expr expr;
  DType dtype = DType::void_;
  int lanes = 1;                             ///< 1: a scalar
  int mask_bits = 0;                         ///< of a mask, the width of an element
  std::optional<Scalar> constant = {};       ///< of every lane, where it is known
  std::optional<Expr> splatted = {};         ///< the scalar that every lane of a vector is
  std::optional<Expr> negated = {};          ///< this is minus that
  std::optional<Expr> inverse = {};          ///< this is not that, a comparison
  std::string left_operand = {}, rest = {};  ///< of `a + b`: "a" and "b", for `a += b`

  bool is_mask() const { return lanes > 1 && is_bool(dtype); }
};

/// The signed integer type with elements of this many bits.
DType signed_of_bits(int bits);
/// A scalar in every lane.
Value splat(Prelude& prelude, const Value& x, int lanes);
/// A mask with elements of a width.
Expr as_mask(Prelude& prelude, const Value& mask, int bits);
/// The vector's elements converted one by one.
Expr convert(Prelude& prelude, const Expr& x, DType to, int lanes);

/// The value of an ALU node on these sources. `exact`: the result of a sum, difference, product or shift of signed integers is known not to
/// overflow.
Value write_alu(Prelude& prelude, Op op, DType dtype, const std::vector<Value>& sources, bool exact);
/// By the rules of Scalar::cast.
Value write_cast(Prelude& prelude, const Value& x, DType dtype);
Value write_bitcast(Prelude& prelude, const Value& x, DType dtype);

}  // namespace tinygrad::renderer::cstyle
