// Tables of (input, expected) for the data and movement rules.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::symbolic {
namespace {

struct Case {
  UOp input, expected;
};

void check(const rewrite::Rules<>& rules, std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    const UOp got = rewrite::graph_rewrite(c.input, rules);
    EXPECT_EQ(got, c.expected) << print_expr(c.input) << "\n  became   " << print_expr(got) << "\n  expected " << print_expr(c.expected);
  }
}
/// Inputs that must not change.
void check_kept(const rewrite::Rules<>& rules, std::initializer_list<UOp> inputs) {
  for (const UOp& u : inputs) check(rules, {{u, u}});
}

UOp loaded(DType d, int slot) { return load(index(param(d, 4, {.slot = slot}), range(4, 0))); }
UOp lit(DType d, double v) { return constant(d, v); }
UOp lit(DType d, int v) { return constant(d, v); }

constexpr DType f32 = DType::float32, i32 = DType::int32, u8 = DType::uint8;

class DataRules : public ::testing::Test {
 protected:
  const UOp f = loaded(f32, 0), g = loaded(f32, 1), i = loaded(i32, 2), k = loaded(i32, 3), p = loaded(DType::bool_, 4), b = loaded(u8, 5);
};

TEST_F(DataRules, Constants) {
  const double inf = std::numeric_limits<double>::infinity();
  check(data_rules(), {
                          {lit(f32, 0.1) + lit(f32, 0.2), constant(Scalar::of(0.1f + 0.2f))},
                          {lit(f32, 0.0) * lit(f32, -1.0), lit(f32, -0.0)},
                          {lit(f32, inf) - lit(f32, inf), lit(f32, NAN)},
                          {lit(u8, 200) + lit(u8, 100), lit(u8, 44)},
                          {lit(i32, std::numeric_limits<int>::max()) + lit(i32, 1), lit(i32, std::numeric_limits<int>::min())},
                          {lit(i32, 1) < lit(i32, 2), bool_const(true)},
                          {cast(lit(f32, 2.5), i32), lit(i32, 2)},
                          {bitcast(lit(f32, 1.0), i32), lit(i32, 0x3f800000)},
                          {where(bool_const(false), lit(i32, 1), lit(i32, 2)), lit(i32, 2)},
                          {alu(Op::SQRT, {lit(f32, 4.0)}), lit(f32, 2.0)},
                      });
  const UOp on_cpu = UOp(Op::CONST, f32, {}, ConstArg{Scalar::of(1.0f), "CPU"});
  const UOp elsewhere = UOp(Op::CONST, f32, {}, ConstArg{Scalar::of(1.0f), "CUDA"});
  check(data_rules(), {{on_cpu + lit(f32, 1.0), UOp(Op::CONST, f32, {}, ConstArg{Scalar::of(2.0f), "CPU"})}});
  check_kept(data_rules(), {on_cpu + elsewhere});
}

TEST_F(DataRules, WhatDoesNothing) {
  check(data_rules(), {
                          {f * lit(f32, 1.0), f},
                          {lit(f32, 1.0) * f, f},
                          {f + lit(f32, -0.0), f},
                          {f - lit(f32, 0.0), f},
                          {alu(Op::FDIV, {f, lit(f32, 1.0)}), f},
                          {i + 0, i},
                          {i - 0, i},
                          {i * 1, i},
                          {floor_div(i, 1), i},
                          {alu(Op::CDIV, {i, lit(i32, 1)}), i},
                          {i | lit(i32, 0), i},
                          {i | i, i},
                          {i & i, i},
                          {i & lit(i32, -1), i},
                          {b & lit(u8, 255), b},
                          {i ^ lit(i32, 0), i},
                          {i << lit(i32, 0), i},
                          {i >> lit(i32, 0), i},
                          {max(f, f), f},
                          {-(-f), f},
                          {alu(Op::TRUNC, {i}), i},
                          {p & bool_const(true), p},
                          {where(p, f, f), f},
                          {where(logical_not(p), f, g), where(p, g, f)},
                      });
}

TEST_F(DataRules, Zeros) {
  check(data_rules(), {
                          {i * 0, lit(i32, 0)},
                          {i & lit(i32, 0), lit(i32, 0)},
                          {i - i, lit(i32, 0)},
                          {i ^ i, lit(i32, 0)},
                          {floor_mod(i, 1), lit(i32, 0)},
                          {i << lit(i32, 32), lit(i32, 0)},
                          {i << lit(i32, -1), lit(i32, 0)},
                          {b << lit(i32, 8), lit(u8, 0)},
                          {f < f, bool_const(false)},
                          {ne(i, i), bool_const(false)},
                          {eq(i, i), bool_const(true)},
                          {ne(p, p), bool_const(false)},
                      });
}

TEST_F(DataRules, WhatFloatsForbid) {
  check_kept(data_rules(), {
                               f + lit(f32, 0.0),  // -0.0 becomes 0.0
                               f - lit(f32, -0.0),
                               f * lit(f32, 0.0),  // NaN, infinities
                               f - f,
                               alu(Op::FDIV, {f, f}),
                               ne(f, f),
                               eq(f, f),
                               (f + lit(f32, 1.0)) + lit(f32, 2.0),  // rounds twice
                               (f * lit(f32, 3.0)) * lit(f32, 5.0),
                               alu(Op::FDIV, {f, lit(f32, 3.0)}),
                           });
}

TEST_F(DataRules, WrappingConstantsGather) {
  check(data_rules(), {
                          {(i + 1) + 2, i + 3},
                          {lit(i32, 2) + (lit(i32, 1) + i), i + 3},
                          {(b + 200) + 100, b + 44},
                          {(i * 3) * 5, i * 15},
                          {i - 3, i + -3},
                          {(i & lit(i32, 6)) & lit(i32, 3), i & lit(i32, 2)},
                          {(i | lit(i32, 6)) | lit(i32, 3), i | lit(i32, 7)},
                          {(i ^ lit(i32, 6)) ^ lit(i32, 3), i ^ lit(i32, 5)},
                          {max(max(f, lit(f32, 1.0)), lit(f32, 2.0)), max(f, lit(f32, 2.0))},
                          {alu(Op::FDIV, {f, lit(f32, 8.0)}), f * lit(f32, 0.125)},
                          {alu(Op::FDIV, {f, lit(f32, -0.5)}), f * lit(f32, -2.0)},
                      });
}

TEST_F(DataRules, Conversions) {
  check(data_rules(), {
                          {UOp(Op::CAST, f32, {f}), f},
                          {UOp(Op::BITCAST, f32, {f}), f},
                          {cast(cast(b, i32), f32), cast(b, f32)},
                          {cast(cast(f, DType::float64), f32), f},
                          {cast(cast(p, i32), DType::bool_), p},
                          {cast(cast(i, DType::int16), DType::int8), cast(i, DType::int8)},
                          {cast(cast(i, DType::index), i32), i},
                          {bitcast(bitcast(f, i32), DType::uint32), bitcast(f, DType::uint32)},
                          {bitcast(bitcast(f, i32), f32), f},
                          {ne(cast(p, i32), lit(i32, 0)), p},
                      });
  check_kept(data_rules(), {
                               cast(cast(f, DType::float16), f32),
                               cast(cast(i, DType::int8), i32),
                               cast(cast(i, DType::int8), DType::bool_),
                               cast(cast(f, i32), f32),
                           });
}

TEST_F(DataRules, Bounds) {
  const UOp small = cast(b, i32);  // 0..255
  check(data_rules(), {
                          {small < 256, bool_const(true)},
                          {floor_mod(small, 300), small},
                          {alu(Op::CMOD, {small, lit(i32, 300)}), small},
                          {floor_div(small, 300), lit(i32, 0)},
                          {max(small, lit(i32, 0)), small},
                          {max(small, lit(i32, 300)), lit(i32, 300)},
                      });
  // It wraps: i + 1 may be less than i.
  check_kept(data_rules(), {i < i + 1, floor_mod(small, 100), floor_mod(i, 300)});
}

TEST_F(DataRules, ComparisonsOfIndices) {
  const UOp r = range(100, 7), n = cast(r, i32), small = cast(r, DType::int8), number = constant(i32, 30);
  check(data_rules(), {
                          {n < number, r < 30},
                          {number < n, index_const(30) < r},
                          {eq(n, number), eq(r, index_const(30))},
                          {cast(r * 2, i32) < n, r * 2 < r},
                          {small < constant(DType::int8, 30), r < 30},
                      });
  check_kept(data_rules(), {n < i});
  // What does not fit wraps around.
  const UOp wrapped = cast(r * 2, DType::int8) < constant(DType::int8, 30);
  check_kept(data_rules(), {wrapped});
}

// Where its index is not valid a load gives 0.
TEST_F(DataRules, LoadsThatAreNotMade) {
  const UOp m = param(f32, 4, {.slot = 0}), r = range(9, 7), s = range(9, 8), zero = constant(f32, 0.0);
  const auto gated = [&](const UOp& valid) { return load(index(m, r).with_src(UOps{m, r, valid})); };
  const UOp both = rewrite::graph_rewrite(gated((r < 4) & (s < 4)), data_rules()), one = gated(r < 4), other = where(s < 4, one, zero);
  check(data_rules(), {
                          {gated(bool_const(false)), zero},
                          {where(r < 4, one, zero), one},
                          {where(s < 4, where(r < 4, both, zero), zero), both},
                      });
  check_kept(data_rules(), {other});
}

// A tensor-level value has a shape, which a constant does not: what would lose it stays.
TEST_F(DataRules, ShapesAreKept) {
  const UOp t = reshape(param(i32, 12, {.slot = 0}), {3, 4});
  check_kept(data_rules(), {t * 0, t - t, ne(t, t), where(t < 3, i, i), where(bool_const(true), i, t)});
  check(data_rules(), {{t * 1, t}, {(t + 1) + 2, t + 3}});
  // A sum of t is computed of it, and has no shape.
  const UOp sum(Op::REDUCE, i32, {t}, ReduceArg{Op::ADD, {0, 1}});
  check_kept(data_rules(), {where(t < 3, sum, sum), t * 0 + sum, where(bool_const(true), sum, t)});
  check(data_rules(), {{where(t < 3, t, t), t}, {where(t < 3, t + sum, t + sum), t + sum}});
}

TEST_F(DataRules, IndexIsLeftAlone) {
  const UOp r = range(4, 0);
  check_kept(data_rules(), {r + 0, r * 0, (r + 1) + 2, r - r});
}

TEST(MovementRules, Merge) {
  const UOp x = reshape(param(f32, 24, {.slot = 0}), {2, 3, 4}), s = load(index(param(f32, 1, {.slot = 1}), index_const(0)));
  const UOp n = variable("n", 1, 2);
  check(movement_rules(), {
                              {reshape(reshape(x, {6, 4}), {4, 6}), reshape(param(f32, 24, {.slot = 0}), {4, 6})},
                              {expand(expand(s, {3}), {3}), expand(s, {3})},
                              {permute(permute(x, {1, 2, 0}), {1, 2, 0}), permute(x, {2, 0, 1})},
                              {permute(permute(x, {1, 2, 0}), {2, 0, 1}), x},
                              {permute(x, {0, 1, 2}), x},
                              {flip(flip(x, {0, 1}), {1, 2}), flip(x, {0, 2})},
                              {flip(flip(x, {1}), {1}), x},
                              {flip(x, {}), x},
                              {shrink(shrink(x, {0, 2, 1, 3, 1, 4}), {1, 2, 0, 1, 1, 3}), shrink(x, {1, 2, 1, 2, 2, 4})},
                              {shrink(shrink(x, UOps{n, index_const(2)}), UOps{index_const(0), index_const(1)}), shrink(x, UOps{n, n + 1})},
                              {pad(pad(x, {1, 2, 0, 0, 0, 0}), {0, 1, 2, 0, 0, 0}), pad(x, {1, 3, 2, 0, 0, 0})},
                              {pad(x, {0, 0, 0, 0, 0, 0}), x},
                              {reshape(s, {}), s},
                          });
  check_kept(movement_rules(), {permute(flip(x, {0}), {1, 0, 2}), pad(shrink(x, {0, 1, 0, 1, 0, 1}), {0, 1, 0, 2, 0, 3})});
}

}  // namespace
}  // namespace tinygrad::symbolic
