// Random data expressions on special values: the rules change no bit of a result.
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "support/test_scale.h"
#include "symbolic/bounds.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::symbolic {
namespace {

constexpr DType types[] = {DType::bool_, DType::int8,   DType::uint8,   DType::int32,   DType::uint32,
                           DType::int64, DType::uint64, DType::float16, DType::float32, DType::float64};

struct Generator {
  explicit Generator(uint64_t seed) : random(seed) {}

  int number(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); }
  bool chance(int percent) { return number(0, 99) < percent; }
  DType type() { return types[number(0, int(std::size(types)) - 1)]; }

  Scalar value(DType d) {
    const double inf = std::numeric_limits<double>::infinity();
    const double special[] = {0.0, -0.0, 1.0, -1.0, 2.0, 0.5, inf, -inf, std::nan(""), 3.0, -7.25, 65504.0, 1e-8, 1e30};
    if (is_float(d)) return Scalar::of(special[number(0, int(std::size(special)) - 1)], d);
    if (chance(20)) return min_value(d);
    if (chance(20)) return max_value(d);
    return Scalar::of(chance(70) ? number(-4, 4) : number(-300, 300), d);
  }
  /// One of two values of the type, read from memory, or a constant.
  UOp leaf(DType d) {
    if (chance(40)) return constant(value(d));
    return load(index(param(d, 4, {.slot = int(d) * 2 + number(0, 1)}), range(4, 0)));
  }
  UOp expression(DType d, int depth) {
    if (depth <= 0 || chance(10)) return leaf(d);
    auto sub = [&](DType t) { return expression(t, depth - 1); };
    auto twice_or = [&](const UOp& a) { return chance(15) ? a : sub(d); };  // x op x
    if (chance(12)) return where(sub(DType::bool_), sub(d), sub(d));
    if (chance(15)) return UOp(Op::CAST, d, {sub(type())});
    if (d == DType::bool_ && chance(60)) {
      const DType of = type();
      const UOp a = sub(of), b = chance(15) ? a : sub(of);
      constexpr Op comparisons[] = {Op::CMPLT, Op::CMPNE, Op::CMPEQ};
      return alu(comparisons[number(0, 2)], {a, b});
    }
    const UOp a = sub(d), b = twice_or(a);
    if (is_bool(d)) {
      constexpr Op ops[] = {Op::AND, Op::OR, Op::XOR, Op::ADD, Op::MUL, Op::MAX, Op::SUB};
      return alu(ops[number(0, 6)], {a, b});
    }
    if (is_float(d)) {
      constexpr Op ops[] = {Op::ADD, Op::MUL, Op::SUB, Op::FDIV, Op::MAX};
      return chance(20) ? alu(chance(50) ? Op::NEG : Op::TRUNC, {a}) : alu(ops[number(0, 4)], {a, b});
    }
    constexpr Op ops[] = {Op::ADD, Op::MUL, Op::SUB, Op::CDIV, Op::CMOD, Op::FLOORDIV, Op::FLOORMOD, Op::MAX, Op::AND, Op::OR, Op::XOR};
    if (chance(10)) return alu(chance(50) ? Op::SHL : Op::SHR, {a, constant(d, number(0, bitsize(d) - 1))});
    return chance(10) ? -a : alu(ops[number(0, 10)], {a, b});
  }

  std::mt19937_64 random;
};

/// The nodes of an expression, its loads as leaves.
std::vector<UOp> nodes(const UOp& u) {
  return toposort_where(std::span(&u, 1), [](const UOp& n) { return !n.is(Op::LOAD); });
}

/// The value of each node, in the order given, which loads values from `memory` by node; none where an op refuses.
std::optional<Scalar> evaluate(const std::vector<UOp>& order, NodeMap<Scalar>& memory, Generator& g) {
  NodeMap<Scalar> value(order.size());
  for (const UOp& u : order) {
    Scalar v;
    if (u.is(Op::LOAD)) {
      if (const Scalar* known = memory.find(u))
        v = *known;
      else
        memory[u] = v = g.value(u.dtype());
    } else if (u.is(Op::CONST)) {
      v = *const_value(u);
    } else {
      UOps sources;
      for (const UOp& s : u.src()) sources.push_back(constant(*value.find(s)));
      const UOp folded = fold_constants(UOp(u.op(), u.dtype(), sources, u.arg()));
      if (!folded) return std::nullopt;
      v = *const_value(folded);
    }
    value[u] = v;
  }
  return *value.find(order.back());
}

TEST(DataFuzz, RulesChangeNoBit) {
  Generator g(test::seed());
  const int count = 4000 * test::test_scale();
  int compared = 0;
  for (int i = 0; i < count; ++i) {
    const UOp u = g.expression(g.type(), g.number(1, 5));
    UOp simple;
    ASSERT_NO_THROW(simple = rewrite::graph_rewrite(u, data_rules())) << print_expr(u);
    ASSERT_EQ(simple.dtype(), u.dtype()) << print_expr(u) << "\nbecame " << print_expr(simple);
    const auto before = nodes(u), after = nodes(simple);
    const Bounds b = bounds(u);
    for (int point = 0; point < 25; ++point) {
      NodeMap<Scalar> memory;
      const auto want = evaluate(before, memory, g), got = evaluate(after, memory, g);
      if (!want) break;
      ++compared;
      ASSERT_TRUE(got) << print_expr(u) << "\nbecame " << print_expr(simple);
      ASSERT_EQ(*want, *got) << print_expr(u) << " = " << want->to_string() << "\nbecame " << print_expr(simple) << " = "
                             << got->to_string();
      if (is_float(u.dtype()) || (u.dtype() == DType::uint64 && want->as_uint() >> 63)) continue;
      ASSERT_TRUE(b.contains(want->as_int())) << print_expr(u) << " = " << want->to_string() << ", not in " << b.min << ".." << b.max;
    }
  }
  EXPECT_GT(compared, count * 10);
}

}  // namespace
}  // namespace tinygrad::symbolic
