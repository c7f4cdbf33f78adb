#include "shape/sint.h"

#include <gtest/gtest.h>
#include <tinygrad/errors.h>

#include <limits>

#include "shape/shape.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {
namespace {

const UOp& n() {
  static const UOp v = variable("n", 1, 16);
  return v;
}
const UOp& m() {
  static const UOp v = variable("m", 0, 3);
  return v;
}

TEST(SInt, NumbersFold) {
  EXPECT_EQ((SInt(3) + 4 * SInt(2)).value(), 11);
  EXPECT_EQ((-SInt(3)).value(), -3);
  EXPECT_EQ(floor_div(SInt(-7), 2).value(), -4);
  EXPECT_EQ(ceil_div(SInt(7), 2).value(), 4);
  EXPECT_EQ(floor_mod(SInt(-7), 3).value(), 2);
  EXPECT_TRUE(SInt(index_const(5)).known());
  EXPECT_EQ(SInt(5).uop(), index_const(5));
  EXPECT_THROW(floor_div(SInt(1), 0), ValueError);
}

TEST(SInt, AlgebraOfSymbols) {
  const SInt a = n(), b = m();
  EXPECT_EQ(a + 1 - a, SInt(1));
  EXPECT_EQ((a + 1) * 2, 2 * a + 2);
  EXPECT_EQ((a + b) * (a - b), a * a - b * b);
  EXPECT_EQ((a + b).uop(), (b + a).uop());
  EXPECT_FALSE(a == b);
  EXPECT_FALSE(a == SInt(4));
  EXPECT_EQ(SInt(n() * 4 + n()), 5 * a);
  EXPECT_EQ(a * 0, SInt(0));
}

TEST(SInt, FormsAreTheSameForAllValues) {
  const auto form = [](const SInt& a, const SInt& b) {
    const SInt size = a * b * 3 + b * floor_div(a + 5, 4) * a + a - b * b;
    NodeMap<UOp> variables;
    for (const UOp& u : toposort(size.uop()))
      if (u.is(Op::BIND)) variables[u] = u.src(0);
    return substitute(size.uop(), variables);
  };
  const UOp x = variable("x", 1, 16), y = variable("y", 1, 16), wanted = form(x, y);
  for (int i = 1; i <= 16; ++i)
    for (int j = 1; j <= 16; ++j) EXPECT_EQ(form(bind(x, i), bind(y, j)), wanted) << i << ", " << j;
}

TEST(SInt, AssumptionsAreWhatHoldsForTheValuesAtHand) {
  const SInt a = bind(n(), 5);
  const SizeAssumptions outer;
  {
    const SizeAssumptions inner;
    EXPECT_FALSE(less_now(a, 4));
    EXPECT_FALSE(less_now(a, 1));  // for all values
    EXPECT_TRUE(less_now(a, 6));
    EXPECT_FALSE(less_now(a, 4));
    ASSERT_EQ(inner.not_negative().size(), 1);
    EXPECT_EQ(SInt(inner.not_negative()[0]), a - 4);
  }
  EXPECT_TRUE(outer.not_negative().empty());
}

TEST(SInt, Bounds) {
  const SInt a = n(), b = m();
  EXPECT_EQ(a.max(), 16);
  EXPECT_EQ((a * b).max(), 48);
  EXPECT_EQ((a - b).min(), -2);
  EXPECT_EQ(SInt(floor_div(n() + 3, 4)).max(), 4);
  EXPECT_EQ(SInt(bind(n(), 7)).max(), 16);
  EXPECT_TRUE(surely_less(b, a + 3));
  EXPECT_FALSE(surely_less(b, a));
  EXPECT_TRUE(surely_differ(a + 4, b));
  EXPECT_EQ(max(a, 0), a);
  EXPECT_EQ(min(a, 20), a);
  EXPECT_FALSE(max(a, 5).known());
}

TEST(SInt, Errors) {
  EXPECT_THROW(SInt(n()).value(), ValueError);
  EXPECT_EQ(SInt(constant(DType::int32, 3)), SInt(3));  // as linear programs have it
  EXPECT_THROW(SInt(constant(DType::float32, 3.0)), DTypeError);
}

TEST(SInt, NumbersBeyond64BitsAreAnError) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(SInt(most - 1) + 1, most);
  EXPECT_EQ(SInt(int64_t{1} << 31) * (int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_THROW(SInt(most) + 1, ShapeError);
  EXPECT_THROW(SInt(-most) - 2, ShapeError);
  EXPECT_THROW(SInt(int64_t{1} << 32) * (int64_t{1} << 31), ShapeError);
  EXPECT_EQ(numel({int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
}

TEST(SInt, Printing) {
  EXPECT_EQ(to_string(make_shape({3, 4})), "(3, 4)");
  EXPECT_EQ(to_string(make_shape({5})), "(5,)");
  EXPECT_EQ(to_string(Shape{}), "()");
  EXPECT_EQ(to_string(Shape{SInt(n()) + 1, 2}), "((n+1), 2)");
}

}  // namespace
}  // namespace tinygrad
