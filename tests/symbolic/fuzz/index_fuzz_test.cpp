// Random index expressions: simplification keeps the value at every point, and bounds hold.
#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>

#include "dtype/scalar_ops.h"
#include "support/test_scale.h"
#include "symbolic/bounds.h"
#include "symbolic/gated.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::symbolic {
namespace {

struct Generator {
  explicit Generator(uint64_t seed) : random(seed) {}

  int64_t number(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); }
  bool chance(int percent) { return number(0, 99) < percent; }

  UOp leaf() {
    if (chance(25)) return index_const(number(-9, 9));
    return leaves[size_t(number(0, int64_t(leaves.size()) - 1))];
  }
  /// Divisors are the sizes that tensors have, more often than anything else.
  UOp divisor(int depth) {
    static constexpr int64_t usual[] = {1, 2, 3, 4, 6, 8, 12, 16};
    if (chance(85)) return index_const(usual[number(0, 7)]);
    return chance(50) ? index_const(number(-5, 5)) : index_expression(depth - 1);
  }
  UOp index_expression(int depth) {
    if (depth <= 0 || chance(10)) return leaf();
    switch (number(0, 13)) {
      case 0:
      case 1:
      case 2:
      case 3: return index_expression(depth - 1) + index_expression(depth - 1);
      case 4: return index_expression(depth - 1) - index_expression(depth - 1);
      case 5:
      case 6: return index_expression(depth - 1) * number(-4, 12);
      case 7: return index_expression(depth - 1) * index_expression(depth - 2);
      case 8:
      case 9: return floor_div(index_expression(depth - 1), divisor(depth));
      case 10:
      case 11: return floor_mod(index_expression(depth - 1), divisor(depth));
      case 12: return alu(chance(50) ? Op::CDIV : Op::CMOD, {index_expression(depth - 1), divisor(depth)});
      default:
        return chance(50) ? max(index_expression(depth - 1), index_expression(depth - 1))
                          : where(condition(depth - 1), index_expression(depth - 1), index_expression(depth - 1));
    }
  }
  UOp condition(int depth) {
    switch (number(0, 5)) {
      case 0: return depth <= 0 ? bool_const(chance(50)) : condition(depth - 1) & condition(depth - 1);
      case 1: return depth <= 0 ? bool_const(chance(50)) : condition(depth - 1) | condition(depth - 1);
      case 2: return logical_not(index_expression(depth) < index_expression(depth - 1));
      case 3:
        return chance(50) ? eq(index_expression(depth), index_expression(depth - 1))
                          : ne(index_expression(depth), index_expression(depth - 1));
      default: return index_expression(depth) < index_expression(depth - 1);
    }
  }

  std::mt19937_64 random;
  std::vector<UOp> leaves;
};

/// The value of an expression where the leaves have the given values.
Scalar evaluate(const std::vector<UOp>& order, const NodeMap<Scalar>& leaves) {
  NodeMap<Scalar> value(order.size());
  for (const UOp& u : order) {
    if (const Scalar* v = leaves.find(u)) {
      value[u] = *v;
      continue;
    }
    if (u.is(Op::CONST)) {
      value[u] = *const_value(u);
      continue;
    }
    UOps sources;
    for (const UOp& s : u.src()) sources.push_back(constant(value[s]));
    const UOp folded = fold_constants(u.with_src(sources));
    if (!folded) throw InternalError("no value for " + print_expr(u));
    value[u] = *const_value(folded);
  }
  return value[order.back()];
}

/// Points to try: all corners of the leaves' boxes and random ones between.
std::vector<NodeMap<Scalar>> points(Generator& g, int count) {
  std::vector<NodeMap<Scalar>> out;
  for (int i = 0; i < count; ++i) {
    NodeMap<Scalar> p;
    for (const UOp& u : g.leaves) {
      const Bounds b = bounds(u);
      const int64_t v = g.chance(30) ? b.min : g.chance(40) ? b.max : g.number(b.min, b.max);
      p[u] = Scalar::from_int(v, DType::index);
    }
    out.push_back(std::move(p));
  }
  return out;
}

void check(Generator& g, const UOp& u) {
  UOp simple;
  ASSERT_NO_THROW(simple = simplify_index(u)) << print_expr(u);
  ASSERT_EQ(simplify_index(simple).get(), simple.get()) << print_expr(u) << "\nis not stable: " << print_expr(simple);
  const Bounds b = bounds(u), sb = bounds(simple);
  // Leaves stand for themselves: a RANGE is not entered.
  auto nodes = [](const UOp& root) { return toposort_where(std::span(&root, 1), [](const UOp& n) { return !n.is(Op::RANGE); }); };
  const auto before = nodes(u), after = nodes(simple);
  for (const auto& p : points(g, 60)) {
    const Scalar want = evaluate(before, p), got = evaluate(after, p);
    ASSERT_EQ(want, got) << print_expr(u) << "\nbecame " << print_expr(simple);
    ASSERT_TRUE(b.contains(want.as_int())) << print_expr(u) << " is " << want.as_int() << ", not in " << b.min << ".." << b.max;
    ASSERT_TRUE(sb.contains(want.as_int())) << print_expr(simple) << " is " << want.as_int() << ", not in " << sb.min << ".." << sb.max;
  }
}

TEST(IndexFuzz, SimplificationKeepsValuesAndBoundsHold) {
  Generator g(test::seed());
  const int count = 3000 * test::test_scale();
  for (int i = 0; i < count; ++i) {
    g.leaves.clear();
    static constexpr int64_t sizes[] = {2, 3, 4, 5, 8, 12, 16, 48};
    for (int k = 0; k < 3; ++k) g.leaves.push_back(range(sizes[g.number(0, 7)], k));
    const int64_t lo = g.number(-6, 4);
    g.leaves.push_back(variable("v", lo, lo + g.number(0, 20)));
    g.leaves.push_back(variable("n", 1, g.number(1, 9)));
    const int depth = int(g.number(1, 5));
    check(g, g.chance(70) ? g.index_expression(depth) : g.condition(depth));
    if (HasFatalFailure()) return;
  }
}

/// The index is the same wherever the condition holds, and the condition everywhere.
void check_gated(Generator& g, const UOp& index, const UOp& valid) {
  Gated gated;
  ASSERT_NO_THROW(gated = simplify_gated(index, valid)) << print_expr(index) << " where " << print_expr(valid);
  auto nodes = [](const UOp& root) { return toposort_where(std::span(&root, 1), [](const UOp& n) { return !n.is(Op::RANGE); }); };
  const auto i0 = nodes(index), v0 = nodes(valid), i1 = nodes(gated.index), v1 = nodes(gated.valid);
  for (const auto& p : points(g, 100)) {
    const Scalar holds = evaluate(v0, p);
    ASSERT_EQ(holds, evaluate(v1, p)) << print_expr(valid) << "\nbecame " << print_expr(gated.valid);
    if (!holds.as_bool()) continue;
    ASSERT_EQ(evaluate(i0, p), evaluate(i1, p))
        << print_expr(index) << "\nbecame " << print_expr(gated.index) << "\nwhere " << print_expr(valid);
  }
}

// Multiples of quotients beside what the quotient is of: their bounds know of each other.
TEST(IndexFuzz, MultiplesOfQuotients) {
  Generator g(test::seed() + 2);
  const int count = 500 * test::test_scale();
  for (int i = 0; i < count; ++i) {
    g.leaves.clear();
    static constexpr int64_t sizes[] = {2, 3, 4, 5, 8, 12, 16, 48};
    for (int k = 0; k < 3; ++k) g.leaves.push_back(range(sizes[g.number(0, 7)], k));
    const UOp n = g.leaves[0] * g.number(1, 3) + g.leaves[1] * g.number(-2, 2) + g.number(-4, 4);
    const int64_t c = g.number(2, 6);
    const UOp sum = floor_div(n, c) * (c * g.number(-3, 3)) + n * g.number(-2, 2) + g.leaves[2] * g.number(-2, 2) + g.number(-9, 9);
    const int64_t by = g.number(2, 80);
    const UOp simple[] = {floor_div(sum, by), floor_mod(sum, by), sum < g.number(-20, 80), max(sum, index_const(g.number(-20, 80)))};
    for (const UOp& u : simple) check(g, u);
    check_gated(g, simple[g.number(0, 1)] * 3 + sum,
                eq(floor_mod(n, c), index_const(g.number(0, c - 1))) & (g.leaves[2] < g.number(1, 12)));
    if (HasFatalFailure()) return;
  }
}

TEST(IndexFuzz, GatedIndices) {
  Generator g(test::seed());
  const int count = 2000 * test::test_scale();
  for (int i = 0; i < count; ++i) {
    g.leaves.clear();
    static constexpr int64_t sizes[] = {2, 3, 4, 5, 8, 12, 16, 48};
    for (int k = 0; k < 3; ++k) g.leaves.push_back(range(sizes[g.number(0, 7)], k));
    const auto sum = [&] {
      return g.leaves[size_t(g.number(0, 2))] * g.number(-2, 3) + g.leaves[size_t(g.number(0, 2))] + g.number(-4, 4);
    };
    const auto clause = [&] {
      const UOp x = g.chance(80) ? sum() : g.index_expression(2);
      if (g.chance(10)) return eq(x, index_const(g.number(-1, 9)));
      return g.chance(50) ? x < g.number(0, 12) : logical_not(x < g.number(-2, 3));
    };
    UOp valid = clause();
    for (int64_t k = g.number(0, 3); k > 0; --k) valid = valid & clause();
    const int64_t n = g.number(2, 9);
    const UOp x = sum();
    check_gated(g, g.chance(50) ? floor_div(x, n) * 5 + floor_mod(x, n) + sum() : g.index_expression(3), valid);
    if (HasFatalFailure()) return;
  }
}

// What rangeify writes: a flat index taken apart and put together again, again and again.
TEST(IndexFuzz, ReshapesOfReshapes) {
  Generator g(test::seed() + 1);
  const int count = 500 * test::test_scale();
  for (int i = 0; i < count; ++i) {
    static constexpr int64_t sizes[] = {2, 3, 4, 6, 8};
    g.leaves.clear();
    UOp flat = index_const(0);
    int64_t total = 1;
    for (int k = 0; k < 3; ++k) {
      const int64_t size = sizes[g.number(0, 4)];
      g.leaves.push_back(range(size, k));
      flat = flat * size + g.leaves.back();
      total *= size;
    }
    const UOp original = flat;
    for (int step = 0; step < 2; ++step) {
      std::vector<int64_t> dims;
      for (int64_t rest = total; rest > 1;) {
        int64_t d = rest;
        for (int64_t candidate : {2, 3, 4, 6, 8, 12})
          if (rest % candidate == 0 && g.chance(40)) d = candidate;
        dims.push_back(d);
        rest /= d;
      }
      std::vector<UOp> axes(dims.size());
      int64_t stride = 1;
      for (size_t k = dims.size(); k-- > 0; stride *= dims[k]) axes[k] = floor_mod(floor_div(flat, stride), dims[k]);
      UOp again = index_const(0);
      for (size_t k = 0; k < dims.size(); ++k) again = again * dims[k] + axes[k];
      flat = again;
    }
    check(g, flat);
    if (HasFatalFailure()) return;
    ASSERT_EQ(simplify_index(flat), simplify_index(original)) << print_expr(flat) << "\nbecame " << print_expr(simplify_index(flat));
  }
}

}  // namespace
}  // namespace tinygrad::symbolic
