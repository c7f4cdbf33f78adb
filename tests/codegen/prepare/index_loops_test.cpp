// Loops and loads that are taken apart so that indices need no division. SPEC=3: each step leaves the values alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/prepare/part_wrapped_loads.h"
#include "codegen/prepare/split_divided.h"
#include "support/test_scale.h"
#include "uop/graph.h"

namespace tinygrad::codegen {
namespace {

using test::arg, test::ended, test::kernel, test::loop, test::read, test::reduce_loop, test::reduce_over, test::write;

size_t count(const UOp& root, std::initializer_list<Op> ops) {
  const std::vector<UOp> nodes = toposort(root);
  return size_t(std::ranges::count_if(nodes, [&](const UOp& u) { return std::ranges::find(ops, u.op()) != ops.end(); }));
}
size_t divisions(const UOp& root) { return count(root, {Op::FLOORDIV, Op::FLOORMOD}); }

/// The kernel after a step, the heuristics' opts chosen or not.
UOp after(const UOp& sink, std::string_view step, bool noopt = true) {
  std::vector<Step> steps;
  full_rewrite(sink, cpu_target("x86-64-v3"), {.noopt = noopt, .spec = 3}, &steps);
  return std::ranges::find(steps, step, &Step::name)->result;
}

UOp copy(int64_t n, const std::function<UOp(const UOp&)>& at) {
  const UOp i = loop(n, 0);
  return kernel({ended(write(arg(0, n), i, read(arg(1, n), at(i))), {i})});
}

/// out[i] = sum over k of x[(i - k + 1) / stride], where that is one of x's n elements: the adjoint of a strided window.
UOp window_adjoint(int64_t size, int64_t n, int64_t window, int64_t stride) {
  const UOp i = loop(size, 0), k = reduce_loop(window, 1), at = i - k + 1;
  const UOp element = floor_div(at, stride);
  const UOp valid = eq(floor_mod(at, stride), index_const(0)) & logical_not(element < 0) & (element < n);
  const UOp memory = arg(1, n), x = load(index(memory, element).with_src(UOps{memory, element, valid}));
  return kernel({ended(write(arg(0, size), i, reduce_over(Op::ADD, where(valid, x, constant(DType::float32, 0.0)), {k})), {i})});
}

TEST(SplitDivided, LoopsThatAreOnlyDividedBecomeTwo) {
  const UOp transposed = copy(96, [](const UOp& i) { return floor_mod(i, 8) * 12 + floor_div(i, 8); });
  EXPECT_EQ(divisions(after(transposed, "split divided")), 0U);
  EXPECT_EQ(count(after(transposed, "merge ranges"), {Op::RANGE}), 2U);
  const UOp thrice = copy(96, [](const UOp& i) { return floor_mod(i, 8) * 12 + floor_mod(floor_div(i, 8), 3) * 4 + floor_div(i, 24); });
  EXPECT_EQ(divisions(after(thrice, "split divided")), 0U);
  EXPECT_EQ(count(after(thrice, "merge ranges"), {Op::RANGE}), 3U);
}

TEST(SplitDivided, LongRowsStayWhole) {
  // a[i] is loaded in vectors; pieces of three elements would have none.
  const UOp i = loop(96, 0);
  const UOp sum = read(arg(1, 96), i) + read(arg(2, 32), floor_div(i, 3));
  const UOp k = kernel({ended(write(arg(0, 96), i, sum), {i})});
  EXPECT_EQ(split_divided(k), k);
  const UOp repeated = copy(96, [](const UOp& at) { return floor_div(at, 2); });
  EXPECT_EQ(split_divided(repeated), repeated);
  const UOp whole = test::elementwise(96);
  EXPECT_EQ(split_divided(whole), whole);
}

TEST(SplitDivided, WhatChoosesByThePlaceInAShortPieceIsALoopOfPieces) {
  const UOp i = loop(96, 0), piece = floor_div(i, 4);
  const auto chosen_of = [&](const UOp& condition) {
    const UOp value = where(condition, read(arg(1, 24), piece), read(arg(2, 24), piece));
    return kernel({ended(write(arg(0, 96), i, value), {i})});
  };
  EXPECT_EQ(divisions(split_divided(chosen_of(floor_mod(i, 4) < 1))), 0U);
  const UOp elsewhere = chosen_of(read(arg(3, 24), piece) < 1);
  EXPECT_EQ(split_divided(elsewhere), elsewhere);
}

TEST(SplitDivided, PiecesMayReachBeyondTheEndByAQuarter) {
  const auto chosen = [](int64_t size) {
    const UOp i = loop(size, 0), piece = floor_div(i, 4);
    return kernel({ended(write(arg(0, size), i, where(floor_mod(i, 4) < 1, read(arg(1, 24), piece), read(arg(2, 24), piece))), {i})});
  };
  EXPECT_EQ(divisions(split_divided(chosen(14))), 0U);
  EXPECT_EQ(split_divided(chosen(6)), chosen(6));
}

TEST(SplitDivided, ResiduesOfAWindowAreWrittenOut) {
  for (const int64_t size : {32, 31}) {
    const UOp sum = window_adjoint(size, 16, 3, 2);
    const UOp expanded = after(sum, "simplify expanded");
    EXPECT_EQ(divisions(expanded), 0U);
    EXPECT_LE(count(expanded, {Op::LOAD}), 3U);  // k is 1 where i is even, 0 or 2 where it is odd
  }
  EXPECT_EQ(divisions(after(window_adjoint(96, 24, 5, 4), "simplify expanded")), 0U);
  // Too much to write out.
  EXPECT_GT(divisions(after(window_adjoint(96, 12, 7, 8), "simplify expanded")), 0U);
}

TEST(PartWrappedLoads, ARolledRowIsTwoRows) {
  const UOp rolled = copy(96, [](const UOp& i) { return floor_mod(i + 37, 96); });
  const UOp parted = after(rolled, "part wrapped loads");
  EXPECT_EQ(divisions(parted), 0U);
  EXPECT_EQ(count(parted, {Op::LOAD}), 2U);
  after(rolled, "linearize", false);
  // Nothing is gained where neighbours stay apart, or where there is more than one wrap.
  const UOp apart = copy(95, [](const UOp& i) { return floor_mod(i * 2 + 1, 95); });
  EXPECT_EQ(part_wrapped_loads(apart), apart);
  const UOp often = copy(96, [](const UOp& i) { return floor_mod(i + 37, 30); });
  EXPECT_EQ(count(after(often, "part wrapped loads"), {Op::LOAD}), 1U);
}

// A flat index taken apart, turned around and put together again; windows of all kinds; rolls.
TEST(IndexLoops, RandomKernelsKeepTheirValues) {
  std::mt19937_64 random(tinygrad::test::seed());
  const auto number = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  for (int n = 60 * tinygrad::test::test_scale(); n > 0; --n) {
    static constexpr int64_t sizes[] = {2, 3, 4, 5, 6, 8, 12, 16};
    const int64_t a = sizes[number(0, 7)], b = sizes[number(0, 7)], c = sizes[number(0, 7)], total = a * b * c;
    const int64_t by = number(1, total - 1), scale = number(1, 3);
    const UOp turned = copy(total, [&](const UOp& i) {
      const UOp x = floor_div(i, b * c), y = floor_mod(floor_div(i, c), b), z = floor_mod(i, c);
      return number(0, 1) ? (z * a + x) * b + y : (y * c + z) * a + x;
    });
    const UOp rolled = copy(total, [&](const UOp& i) { return floor_mod(i * scale + by, total); });
    const UOp window = window_adjoint(number(5, 40), number(3, 20), number(1, 5), number(2, 4));
    for (const UOp& k : {turned, rolled, window})
      for (const bool noopt : {true, false}) ASSERT_NO_THROW(after(k, "linearize", noopt)) << print_expr(k);
  }
}

}  // namespace
}  // namespace tinygrad::codegen
