// Tables of (input, expected) for the index and bool rules.
#include <gtest/gtest.h>

#include "symbolic/build.h"
#include "symbolic/gated.h"
#include "symbolic/simplify.h"
#include "uop/graph.h"

namespace tinygrad::symbolic {
namespace {

UOp r(int size, int id) { return range(size, id); }
UOp idx(int64_t v) { return index_const(v); }
const bool yes = true, no = false;

struct Case {
  UOp input, expected;
};

/// The same but for the order of operands, which content keys decide.
bool same(const UOp& got, const UOp& expected) {
  return got == expected || (got == simplify_index(expected) && toposort(got).size() == toposort(expected).size());
}

void check(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    const UOp got = simplify_index(c.input);
    EXPECT_TRUE(same(got, c.expected)) << print_expr(c.input) << "\n  became   " << print_expr(got) << "\n  expected "
                                       << print_expr(c.expected);
    EXPECT_EQ(simplify_index(got), got) << print_expr(got) << " is not a normal form";
  }
}

class IndexRules : public ::testing::Test {
 protected:
  // Variables that may be negative, then ranges.
  const UOp a = variable("a", -50, 50), b = variable("b", -50, 50), n = variable("n", 1, 10);
  const UOp x = r(4, 0), y = r(8, 1), z = r(3, 2);
};

TEST_F(IndexRules, Constants) {
  check({
      {idx(2) + idx(3), idx(5)},
      {floor_div(idx(-7), idx(2)), idx(-4)},
      {floor_mod(idx(-7), idx(2)), idx(1)},
      {alu(Op::CDIV, {idx(-7), idx(2)}), idx(-3)},
      {alu(Op::CMOD, {idx(-7), idx(2)}), idx(-1)},
      {idx(2) < idx(3), bool_const(yes)},
      {cast(constant(DType::int32, 5), DType::index), idx(5)},
      {idx(int64_t(1) << 62) * 4, idx(int64_t(1) << 62) * 4},  // unbounded integers: what 64 bits do not hold stays
  });
}

TEST_F(IndexRules, Sums) {
  check({
      {a + 0, a},
      {a * 1, a},
      {a * 0, idx(0)},
      {a - a, idx(0)},
      {-(-a), a},
      {idx(3) + a, a + 3},
      {b + a, a + b},
      {(a + 1) + (b + 2), (a + b) + 3},
      {(a * 2) * 3, a * 6},
      {(a + 1) * 4, a * 4 + 4},
      {a * 3 + a, a * 4},
      {a * 3 - a * 3 + b, b},
      {a + b - a, b},
      {b * a, a * b},
      {a * b - b * a, idx(0)},
      {a * 2 * b, (a * b) * 2},
      {alu(Op::MULACC, {a, idx(2), b}), a * 2 + b},
      {a << idx(3), a * 8},
      {a >> idx(3), floor_div(a, 8)},
      {a & idx(7), floor_mod(a, 8)},
  });
}

TEST_F(IndexRules, QuotientsAndRemaindersJoin) {
  check({
      {floor_div(a, 4) * 4 + floor_mod(a, 4), a},
      {floor_mod(a, 4) * 3 + floor_div(a, 4) * 12 + b, a * 3 + b},
      {floor_mod(floor_div(a, 2), 3) * 2 + floor_mod(a, 2), floor_mod(a, 6)},
      {floor_div(a + 1, 4) * 4 + floor_mod(a + 1, 4), a + 1},
      {floor_div(a * 5, 4) * 4 + floor_mod(a * 5, 4), a * 5},
      {floor_div(a, n) * n + floor_mod(a, n), a},
      {floor_div(floor_div(a, 2), 3) * 3 + floor_mod(floor_div(a, 2), 3), floor_div(a, 2)},
  });
}

TEST_F(IndexRules, FloorDiv) {
  check({
      {floor_div(a, 1), a},
      {floor_div(a, 0), idx(0)},
      {floor_div(x, 4), idx(0)},
      {floor_div(a * 4, 4), a},
      {floor_div(a * 4 + x, 4), a},
      {floor_div(a * 8 + x, 4), a * 2},
      {floor_div(a * 4 + b, 4), a + floor_div(b, 4)},
      {floor_div(a + 9, 4), floor_div(a + 1, 4) + 2},
      {floor_div(a - 1, 4), floor_div(a + 3, 4) + -1},
      {floor_div(a * 6, 4), a + floor_div(a, 2)},
      {floor_div(x * 4 + r(4, 5), 8), floor_div(x, 2)},
      {floor_div(a * 2 + b * 2 + 1, 6), floor_div(a + b, 3)},
      {floor_div(floor_div(a, 2), 3), floor_div(a, 6)},
      {floor_div(floor_div(a, 2) + 1, 3), floor_div(a + 2, 6)},
      {floor_div(floor_mod(a, 12), 4), floor_mod(floor_div(a, 4), 3)},
      {floor_div(a, -2), floor_div(a * -1, 2)},
      {floor_div(x * 3, 4), floor_div(x * 3, 4)},
      {floor_div(x * 3 + 3, 4), x},
      {floor_div(a * n, n), a},
      {floor_div(a * n + range(n, RangeArg{.id = 7}), n), a},
      {alu(Op::CDIV, {x, idx(2)}), floor_div(x, 2)},
      {alu(Op::CDIV, {x - 8, idx(2)}), floor_div(x * -1, 2) * -1 + -4},
      {alu(Op::CDIV, {a, idx(2)}), alu(Op::CDIV, {a, idx(2)})},
  });
}

TEST_F(IndexRules, FloorMod) {
  check({
      {floor_mod(a, 1), idx(0)},
      {floor_mod(a, 0), idx(0)},
      {floor_mod(x, 4), x},
      {floor_mod(x + 4, 4), x},
      {floor_mod(x - 4, 4), x},
      {floor_mod(a * 4 + x, 4), x},
      {floor_mod(a * 5, 4), floor_mod(a, 4)},
      {floor_mod(a + 9, 4), floor_mod(a + 1, 4)},
      {floor_mod(floor_mod(a, 8), 4), floor_mod(a, 4)},
      {floor_mod(floor_mod(a, 8) * 2 + b, 16), floor_mod(a * 2 + b, 16)},
      {floor_mod(a * 2, 8), floor_mod(a, 4) * 2},
      {floor_mod(a * 2 + 1, 8), floor_mod(a, 4) * 2 + 1},
      {floor_mod(y * 4 + x, 8), x + floor_mod(y, 2) * 4},
      {floor_mod(a, -4), floor_mod(a * -1, 4) * -1},
      {floor_mod(a * n, n), idx(0)},
      {floor_mod(a * n + range(n, RangeArg{.id = 7}), n), range(n, RangeArg{.id = 7})},
      {alu(Op::CMOD, {x, idx(2)}), floor_mod(x, 2)},
  });
}

TEST_F(IndexRules, Comparisons) {
  check({
      {x < 4, bool_const(yes)},
      {x < 0, bool_const(no)},
      {a < a + 1, bool_const(yes)},
      {a + 1 < a, bool_const(no)},
      {a + 3 < 5, a < 2},
      {a * 4 < 9, a < 3},
      {a * 4 < 8, a < 2},
      {idx(3) < a, logical_not(a < 4)},
      {a * -1 < -3, logical_not(a < 4)},
      {x - n < 0, x < n},
      {y * 4 + x < 8, y < 2},
      {floor_div(a, 4) < 2, a < 8},
      {floor_div(a + 1, 4) < 2, a < 7},
      {a * 2 < b * 2 + 1, a < b + 1},
      {eq(a + 3, idx(5)), eq(a, idx(2))},
      {eq(a * 2, idx(5)), bool_const(no)},
      {ne(x, idx(9)), bool_const(yes)},
      {eq(b, a), eq(a, b)},
      {ne(a * 2, b * -2), ne(a + b, idx(0))},
      {logical_not(ne(a, b)), eq(a, b)},
  });
}

TEST_F(IndexRules, MaxAndWhere) {
  const UOp c = a < 3;
  check({
      {max(x, idx(9)), idx(9)},
      {max(x, idx(0)), x},
      {max(a, a + 1), a + 1},
      {max(idx(2), a), max(a, idx(2))},
      {max(max(a, idx(2)), idx(4)), max(a, idx(4))},
      {min(x, idx(9)), x},
      {where(bool_const(yes), a, b), a},
      {where(bool_const(no), a, b), b},
      {where(c, a, a), a},
      {where(logical_not(c), a, b), where(c, b, a)},
      {where(c, where(c, a, b), idx(7)), where(c, a, idx(7))},
      {where(c, idx(7), where(c, a, b)), where(c, idx(7), b)},
      {where(x < 4, a, b), a},
      {where(c, idx(1), idx(0)), where(c, idx(1), idx(0))},
  });
}

TEST_F(IndexRules, Logic) {
  const UOp p = a < 3, q = b < 3, t = bool_const(yes), f = bool_const(no);
  check({
      {p & t, p},
      {f & p, f},
      {p | f, p},
      {p | t, t},
      {p & p, p},
      {(p & q) & p, p & q},
      {q | p, p | q},
      {p & logical_not(p), f},
      {p | logical_not(p), t},
      {logical_not(logical_not(p)), p},
      {ne(p, f), p},
      {eq(p, t), p},
      {eq(p, f), logical_not(p)},
      {ne(t, p), logical_not(p)},
      {p + q, p | q},
      {p * q, p & q},
      {max(p, q), p | q},
      {p ^ q, ne(p, q)},
      {p - q, ne(p, q)},
      {where(p, t, f), p},
      {where(p, f, t), logical_not(p)},
      {where(p, q, f), p & q},
      {where(p, t, q), p | q},
      {ne(p, p), f},
      {eq(p, p), t},
      {(a < 3) & (a < 5), a < 3},
      {logical_not(a < 3) & logical_not(a < 5), logical_not(a < 5)},
      {(a < 3) & logical_not(a < 3), f},
      {(a < 3) & logical_not(a < 7), f},
  });
  EXPECT_EQ(simplify_index(p < q), simplify_index(logical_not(p) & q));
}

TEST_F(IndexRules, UnderAGate) {
  const UOp i = r(16, 0), k = r(3, 1), at = i + k + -1;
  const UOp inside = logical_not(at < 0) & (at < 16);
  // Within the gate the sum is one of 16 numbers: neither quotient nor remainder is left.
  EXPECT_EQ(simplify_gated(floor_div(at, 16), inside).index, idx(0));
  EXPECT_EQ(simplify_gated(floor_mod(at, 16), inside).index, simplify_index(at));
  EXPECT_EQ(simplify_gated(floor_div(at, 32) * 7 + floor_mod(at, 16) * 2, inside).index, simplify_index(at * 2));
  EXPECT_EQ(simplify_gated(floor_div(i + 8, 12), logical_not(i < 4)).index, idx(1));
  // What the other parts imply goes.
  EXPECT_EQ(simplify_gated(i, (i + k < 5) & (i < 10)).valid, simplify_index(i + k < 5));
  EXPECT_EQ(simplify_gated(i, logical_not(i < 4) & logical_not(i + k < 3)).valid, simplify_index(logical_not(i < 4)));
  EXPECT_EQ(simplify_gated(i, (i < 10) & (k < 2)).valid, simplify_index((i < 10) & (k < 2)));
}

// Where n is known to be a multiple of c, or one more, c*(n//c) is n but for that; otherwise it is so near to n that bounds tell more.
TEST_F(IndexRules, MultiplesOfAQuotient) {
  const UOp i = r(64, 0), k = r(3, 1), at = i + k * -1 + 1, even = eq(floor_mod(at, 2), idx(0));
  EXPECT_EQ(simplify_gated(floor_div(at, 2) * 6 + k * 3, even).index, simplify_index(i * 3 + 3));
  EXPECT_EQ(simplify_gated(floor_div(at, 2) * 2 + k, eq(floor_mod(at, 2), idx(1))).index, i);
  EXPECT_EQ(simplify_gated(k, even & (floor_div(at, 2) * 2 + k < 65)).valid, simplify_index(even));
  check({
      {floor_mod(floor_div(at, 2) * 2 + k + 2, 68), floor_div(at, 2) * 2 + k + 2},
      {floor_div(floor_div(at, 2) * 2 + k + 2, 68), idx(0)},
      {floor_div(at, 4) * 4 - i + k < 2, bool_const(true)},
  });
}

TEST_F(IndexRules, RangesOfSizeOne) {
  const UOp one = range(1, 9);
  const UOp buf = param(DType::float32, 64, {.slot = 0});
  const UOp value = load(index(buf, one + x));
  const UOp effect = store(index(buf, one + x), value);
  check({
      {one, idx(0)},
      {x + one * 4, x},
      {end(effect, UOps{one, x}), end(store(index(buf, x), load(index(buf, x))), UOps{x})},
      {end(effect, UOps{one}), store(index(buf, x), load(index(buf, x)))},
      {UOp(Op::REDUCE, DType::float32, {value, one}, ReduceArg{.op = Op::ADD}), load(index(buf, x))},
      {UOp(Op::REDUCE, DType::float32, {value, one, x}, ReduceArg{.op = Op::ADD}),
       UOp(Op::REDUCE, DType::float32, {load(index(buf, x)), x}, ReduceArg{.op = Op::ADD})},
      {after(buf, UOps{one}), buf},
      {UOp(Op::STAGE, DType::float32, {value, x, one, y}, StageArg{.layout = {2, 1, 0}}),
       UOp(Op::STAGE, DType::float32, {load(index(buf, x)), x, y}, StageArg{.layout = {1, 0}})},
  });
}

// A vector of indices keeps its shape: nothing that has one is dropped.
TEST_F(IndexRules, ShapesAreKept) {
  const UOp lanes = stack(UOps{x, y});
  check({
      {lanes * 0, lanes * 0},
      {lanes - lanes, lanes - lanes},
      {floor_mod(lanes, 1), floor_mod(lanes, 1)},
      {lanes < 100, lanes < 100},
      {lanes + x - x, lanes},
      {(lanes + 1) + 2, lanes + 3},
      {floor_div(lanes * 4, 4), lanes},
  });
}

TEST_F(IndexRules, DataIsLeftAlone) {
  const UOp i = load(index(param(DType::int32, 4, {.slot = 0}), x)), f = load(index(param(DType::float32, 4, {.slot = 1}), x));
  check({{i + 0, i + 0}, {f * 0, f * 0}, {i - i, i - i}, {f < f, f < f}});
}

TEST_F(IndexRules, LongSums) {
  // More terms than the normal form takes: left as they are, in linear time.
  UOp sum = idx(0);
  for (int i = 0; i < 3000; ++i) sum = sum + range(2, i) * (i + 1);
  const UOp simple = simplify_index(sum);
  EXPECT_EQ(simplify_index(simple), simple);
  UOp repeated = x;
  for (int i = 0; i < 100'000; ++i) repeated = repeated + y;
  EXPECT_EQ(simplify_index(repeated), x + y * 100'000);
}

TEST_F(IndexRules, Builders) {
  EXPECT_EQ(sym_add(x, 0), x);
  EXPECT_EQ(sym_add(idx(1), x), x + 1);
  EXPECT_EQ(sym_add(x + 1, y + 2), (x + y) + 3);
  EXPECT_EQ(sym_add(x + 1, -1), x);
  EXPECT_EQ(sym_sub(x, x), idx(0));
  EXPECT_EQ(sym_sub(x, y), x + y * -1);
  EXPECT_EQ(sym_mul(x, 0), idx(0));
  EXPECT_EQ(sym_mul(idx(1), x), x);
  EXPECT_EQ(sym_mul(x * 2, 3), x * 6);
  EXPECT_EQ(sym_div(x, 4), idx(0));
  EXPECT_EQ(sym_div(y, 4), floor_div(y, 4));
  EXPECT_EQ(sym_div(idx(-7), 2), idx(-4));
  EXPECT_EQ(sym_mod(x, 4), x);
  EXPECT_EQ(sym_mod(x, 1), idx(0));
  EXPECT_EQ(sym_mod(idx(-7), 2), idx(1));
  EXPECT_EQ(sym_max(x, idx(5)), idx(5));
  EXPECT_EQ(sym_min(x, idx(5)), x);
  EXPECT_EQ(sym_lt(x, 4), bool_const(yes));
  EXPECT_EQ(sym_ge(x, 0), bool_const(yes));
  EXPECT_EQ(sym_ge(x, 2), logical_not(x < 2));
  EXPECT_EQ(sym_not(sym_not(x < 2)), x < 2);
  EXPECT_EQ(sym_and(bool_const(yes), x < 2), x < 2);
  EXPECT_EQ(sym_and(x < 2, bool_const(no)), bool_const(no));
  EXPECT_EQ(sym_or(bool_const(no), x < 2), x < 2);
  EXPECT_EQ(sym_or(x < 2, bool_const(yes)), bool_const(yes));
  EXPECT_EQ(sym_where(bool_const(no), x, y), y);
  EXPECT_EQ(sym_where(x < 2, y, y), y);
}

}  // namespace
}  // namespace tinygrad::symbolic
