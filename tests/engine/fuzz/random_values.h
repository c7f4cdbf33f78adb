#pragma once
/// Random expressions over some values, with what must be known of each to keep the next op meaningful.

#include <optional>
#include <vector>

#include "engine/fuzz/dice.h"
#include "shape/shape.h"
#include "uop/uop.h"

namespace tinygrad::test {

/// A value together with what holds for its elements, special values (NaN, infinities) apart.
struct Value {
  UOp u;
  bool exact =
      true;  ///< has no rounding errors: always so for integers and bools. Only these go where a float would be cut to discrete values
  double bound = 0;  ///< of the magnitude
  int fraction = 0;  ///< of exact floats: all are multiples of 2^-fraction

  DType dtype() const { return u.dtype(); }
  const Shape& shape() const { return shape_of(u); }
  bool is_float() const { return tinygrad::is_float(dtype()); }
};

/// The bound of integers of which nothing is known.
constexpr double any_integer = 0x1p64;
/// The value of an op that gives these facts in real numbers: integers wrap, floats round. Nothing where a float may grow too large.
std::optional<Value> made(UOp u, bool exact, double bound, int fraction = 0, bool may_be_negative = true);
/// The same elements in other places, zeros among them.
Value view(const Value& of, UOp u);

/// Data dtypes, each as likely as programs use it.
DType random_dtype(Dice& dice);
DType random_float(Dice& dice);
/// Of at most `most` elements.
Shape random_shape(Dice& dice, int64_t most);

class RandomValues {
 public:
  explicit RandomValues(Dice& dice) : dice_(dice) {}

  void add(Value v) { pool_.push_back(std::move(v)); }
  /// Sizes that a value may be cut to: BINDs.
  void add_size(const UOp& bound_variable) { sizes_.push_back(bound_variable); }
  const std::vector<Value>& pool() const { return pool_; }

  /// One of the values, later ones more often.
  const Value& pick();
  /// A new value made from those there by one random op, added to them.
  void grow();

  /// Some view of the value that has this shape: repeated, cut or padded.
  Value fit(const Value& v, const Shape& shape);
  /// Nothing if values might not fit the dtype or, where a float would be cut to discrete values, are not exact.
  static std::optional<Value> convert(const Value& v, DType dtype);

 private:
  using Maybe = std::optional<Value>;

  Maybe random_op();
  Maybe unary(const Value& x);
  Maybe exact_unary(const Value& x);
  Maybe function(const Value& x);
  Maybe binary(const Value& a, const Value& b);
  Maybe integer_binary(const Value& a, const Value& b);
  Maybe comparison(const Value& a, const Value& b);
  Maybe choice(const Value& a, const Value& b);
  Maybe movement(const Value& x);
  Maybe resize(const Value& x);
  Maybe rearrange(const Value& x);
  Maybe join(const Value& a, const Value& b);
  Maybe reduction(const Value& x);
  Maybe plain_reduction(const Value& x, const Axes& axes, bool keepdim);
  Maybe diamond(const Value& x);
  Maybe product(const Value& a, const Value& b);
  Maybe indexed(const Value& x);
  Value constant_like(const Value& x);
  Value symbolic_cut(const Value& x);

  Dice& dice_;
  std::vector<Value> pool_;
  std::vector<UOp> sizes_;
};

}  // namespace tinygrad::test
