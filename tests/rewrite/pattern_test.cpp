#include <cmath>

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "rewrite/rules.h"
#include "uop/build.h"

namespace tinygrad::rewrite {
namespace {

constexpr Capture x{0}, y{1}, c{2}, root{3}, never{4};

UOp a() { return variable("a", 0, 10); }
UOp b() { return variable("b", 0, 10); }
UOp f(const char* name) { return UOp(Op::PARAM, DType::float32, {}, ParamArg{.slot = name[0]}); }

/// The node that capture x stands for where the pattern matches; null where it does not.
UOp matched(const Pat& p, const UOp& u) {
  UOp found;
  CompiledPattern compiled(p);
  if (compiled.root_ops().test(size_t(u.op())))
    compiled.match(u, [&](const Match& m) {
      found = m.has(x) ? m[x] : m.root();
      return true;
    });
  return found;
}
bool matches(const Pat& p, const UOp& u) { return bool(matched(p, u)); }

TEST(Pattern, Ops) {
  EXPECT_TRUE(matches(pat(Op::ADD), a() + b()));
  EXPECT_FALSE(matches(pat(Op::MUL), a() + b()));
  EXPECT_TRUE(matches(pat({Op::MUL, Op::ADD}), a() + b()));
  EXPECT_TRUE(matches(pat(Group::binary), a() + b()));
  EXPECT_FALSE(matches(pat(Group::movement), a() + b()));
  EXPECT_TRUE(matches(x, a() + b()));
}

TEST(Pattern, Sources) {
  const UOp u = group({{a(), b(), a() + b()}});
  EXPECT_TRUE(matches(pat(Op::GROUP), u));
  EXPECT_TRUE(matches(pat(Op::GROUP, {x, y}, rest), u));
  EXPECT_FALSE(matches(pat(Op::GROUP, {x, y}), u));
  EXPECT_TRUE(matches(pat(Op::GROUP, {x, y, c}), u));
  EXPECT_FALSE(matches(pat(Op::GROUP, {x, y, c, root}), u));
  EXPECT_FALSE(matches(pat(Op::GROUP, {x, x}, rest), u));
  EXPECT_TRUE(matches(pat(Op::GROUP, {x, y, x + y}), u));
}

TEST(Pattern, SameCaptureIsTheSameNode) {
  EXPECT_TRUE(matches(x + x, a() + a()));
  EXPECT_FALSE(matches(x + x, a() + b()));
  EXPECT_TRUE(matches(x * 2 + x, a() + a() * 2));
}

TEST(Pattern, CommutativeOpsInEveryOrder) {
  const Pat three_times_neg = (x * -y) + 3;
  for (const UOp& u : {(a() * -b()) + 3, index_const(3) + (a() * -b()), index_const(3) + (-b() * a()), (-b() * a()) + 3})
    EXPECT_EQ(matched(three_times_neg, u), a());
  EXPECT_FALSE(matches((Pat(x) - 3), index_const(3) - a()));
  EXPECT_FALSE(matches((x + 3) + (y + 4), (a() + 3) + (b() + 3)));
  EXPECT_TRUE(matches((x + 3) + (y + 4), (index_const(4) + b()) + (a() + 3)));
  EXPECT_FALSE(matches(pat(Op::ADD, {x, 3}).ordered(), index_const(3) + a()));
}

TEST(Pattern, OtherOrdersAreTriedWhenTheRuleRefuses) {
  const Rules<> rules{{x + y, [](const Match& m) { return m[x].is(Op::NEG) ? m[y] : UOp(); }}};
  EXPECT_EQ(rules.apply(a() + -b()), a());
  EXPECT_EQ(rules.apply(-b() + a()), a());
  EXPECT_FALSE(rules.apply(a() + b()));
}

TEST(Pattern, Numbers) {
  EXPECT_TRUE(matches(cconst(1), constant(DType::float32, 1.0)));
  EXPECT_TRUE(matches(cconst(1), bool_const(true)));
  EXPECT_TRUE(matches(cconst(1.0), constant(DType::int32, 1)));
  EXPECT_FALSE(matches(cconst(2), bool_const(true)));
  EXPECT_TRUE(matches(cconst(-1), constant(DType::uint8, 255)));
  EXPECT_FALSE(matches(cconst(0.5), constant(DType::int32, 0)));
  EXPECT_TRUE(matches(cconst(0), constant(DType::float32, 0.0)));
  EXPECT_FALSE(matches(cconst(0), constant(DType::float32, -0.0)));
  EXPECT_TRUE(matches(cconst(-0.0), constant(DType::float32, -0.0)));
  EXPECT_FALSE(matches(cconst(-0.0), constant(DType::float32, 0.0)));
  EXPECT_TRUE(matches(cconst(NAN), constant(DType::float16, -NAN)));
  EXPECT_FALSE(matches(cconst(1), a()));
}

TEST(Pattern, DTypesAndTests) {
  EXPECT_TRUE(matches(x.dtype(DType::index) + y, a() + b()));
  EXPECT_FALSE(matches(x.dtype({DType::int32, DType::float32}) + y, a() + b()));
  EXPECT_TRUE(matches(x.dtype(is_float) + y, f("f") + f("g")));
  EXPECT_FALSE(matches((x + y).dtype(is_float), a() + b()));
  const Predicate is_var = [](const UOp& u) { return u.is(Op::VAR); };
  EXPECT_TRUE(matches(-x.where(is_var), -a()));
  EXPECT_FALSE(matches(-x.where(is_var), -(-a())));
}

TEST(Pattern, Names) {
  EXPECT_EQ(matched(-(pat(Op::ADD).named(x)), -(a() + b())), a() + b());
  EXPECT_EQ(matched((y + c).named(x), a() + b()), a() + b());
}

TEST(Pattern, Algebra) {
  const UOp u = a(), v = b(), t = u < v;
  EXPECT_TRUE(matches(Pat(x) - y, u - v));
  EXPECT_TRUE(matches(x & y, u & v));
  EXPECT_TRUE(matches(x | y, u | v));
  EXPECT_TRUE(matches(x ^ y, u ^ v));
  EXPECT_TRUE(matches(x << y, u << v));
  EXPECT_TRUE(matches(x >> y, u >> v));
  EXPECT_TRUE(matches(x < y, t));
  EXPECT_TRUE(matches(floor_div(x, y), floor_div(u, v)));
  EXPECT_TRUE(matches(floor_mod(x, y), floor_mod(u, v)));
  EXPECT_TRUE(matches(max(x, y), max(u, v)));
  EXPECT_TRUE(matches(eq(x, y), eq(u, v)));
  EXPECT_TRUE(matches(ne(x, y), ne(u, v)));
  EXPECT_TRUE(matches(logical_not(x), logical_not(t)));
  EXPECT_FALSE(matches(logical_not(x), ne(u, index_const(1))));
  EXPECT_TRUE(matches(where(c, x, y), where(t, u, v)));
}

TEST(Pattern, ChecksItself) {
  EXPECT_THROW(CompiledPattern(pat(Op::ADD, {x})), InternalError);
  EXPECT_THROW(CompiledPattern(pat(Op::NEG, {x, y}, rest)), InternalError);
  EXPECT_THROW(CompiledPattern((x + y).dtype(DType::int32).dtype(DType::index)), InternalError);
  EXPECT_THROW(CompiledPattern(Capture{max_captures}), InternalError);
  EXPECT_THROW(Rules<>({{x + 0, never}}), InternalError);
  const Rules<> rules{{x + 0, [](const Match& m) { return m[never]; }}};
  EXPECT_THROW(rules.apply(a() + 0), InternalError);
}

}  // namespace
}  // namespace tinygrad::rewrite
