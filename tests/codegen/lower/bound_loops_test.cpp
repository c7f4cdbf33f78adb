// Loops that begin and end where masks let terms count. What they compute is tested with opts in tests/codegen/opt/opts_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "codegen/codegen.h"
#include "codegen/kernel_axes.h"
#include "codegen/kernels.h"
#include "codegen/lower/bound_loops.h"
#include "codegen/opt/parse_opts.h"
#include "codegen/simplify.h"
#include "shape/ranges.h"
#include "uop/graph.h"

namespace tinygrad::codegen {
namespace {

using test::arg, test::ended, test::kernel, test::loop, test::read, test::reduce_loop, test::reduce_over, test::write;

UOp bounded(const UOp& sink, const char* opts = "", const Target& target = cpu_target("x86-64-v3")) {
  std::vector<Step> steps;
  full_rewrite(test::with_opts(sink, parse_opts(opts)), target, {.noopt = true, .spec = 3}, &steps);
  return std::ranges::find(steps, std::string_view("bound loops"), &Step::name)->result;
}

/// The iterations of the loop of the kernel's last reduction where its outermost loop is at `at`; of all others the first.
int64_t steps(const UOp& sink, int64_t at) {
  const UOp loop = kernel_axes(sink).back();
  NodeMap<UOp> values;
  for (const UOp& r : ranges_of(loop))
    if (!(r == loop)) values[r] = index_const(r == kernel_axes(sink)[0] ? at : 0);
  return const_value(simplify(substitute(UOp(loop.src(0)), values)))->as_int();
}

/// out[i] = sum over k of a[i, k] where the test holds, else 0
UOp masked_sums(int64_t m, int64_t n, const std::function<UOp(const UOp& i, const UOp& k)>& test) {
  const UOp i = loop(m, 0), k = reduce_loop(n, 1);
  const UOp term = where(test(i, k), read(arg(1, m * n), i * n + k), constant(DType::float32, 0));
  return kernel({ended(write(arg(0, m), i, reduce_over(Op::ADD, term, {k})), {i})});
}

TEST(BoundLoops, ASumOfATriangleEndsAtTheDiagonal) {
  const UOp sums = bounded(masked_sums(32, 32, [](const UOp& i, const UOp& k) { return logical_not(i < k); }));
  EXPECT_EQ(steps(sums, 0), 1);
  EXPECT_EQ(steps(sums, 20), 21);
  EXPECT_EQ(steps(sums, 31), 32);
}

TEST(BoundLoops, OrBeginsThere) {
  const UOp sums = bounded(masked_sums(32, 32, [](const UOp& i, const UOp& k) { return i < k; }));
  EXPECT_EQ(steps(sums, 0), 31);
  EXPECT_EQ(steps(sums, 31), 0);
}

TEST(BoundLoops, ABandHasBothEnds) {
  const UOp sums = bounded(masked_sums(64, 64, [](const UOp& i, const UOp& k) { return (i < k + 5) & (k < i + 3); }));
  EXPECT_EQ(steps(sums, 0), 3);
  EXPECT_EQ(steps(sums, 30), 7);
  EXPECT_EQ(steps(sums, 63), 5);
}

TEST(BoundLoops, WhatIsComputedTogetherTakesTheTermsOfAll) {
  const UOp sums = masked_sums(32, 32, [](const UOp& i, const UOp& k) { return logical_not(i < k); });
  const UOp tiles = bounded(sums, "UPCAST(0,4) UNROLL(1,2)");
  EXPECT_EQ(steps(tiles, 0), 2);   // terms 0 to 3
  EXPECT_EQ(steps(tiles, 7), 16);  // all
}

TEST(BoundLoops, NotAroundTheLoopThatTheMaskIsAbout) { EXPECT_EQ(steps(bounded(test::triangles(16, 0), "OUTER(2,0)"), 0), 16); }

/// out[i] = sum over k and c of x[i + k - 2, c], rows that x lacks being 0
UOp windows(int64_t size, int64_t inside) {
  const UOp i = loop(size, 0), k = range(index_const(5), {.id = 1, .kind = AxisKind::reduce, .order = 1});
  const UOp c = range(index_const(inside), {.id = 2, .kind = AxisKind::reduce, .order = 2}), row = i + k - 2;
  const UOp x = load(index_valid(arg(1, size * inside), row * inside + c, logical_not(row < 0) & (row < size)));
  return kernel({ended(write(arg(0, size), i, reduce_over(Op::ADD, x, {k, c})), {i})});
}

TEST(BoundLoops, WindowsEndAtTheEdges) {
  const auto rows = [](const UOp& sink, int64_t at) {
    const UOp taps = kernel_axes(sink)[1];
    NodeMap<UOp> values;
    values[kernel_axes(sink)[0]] = index_const(at);
    return const_value(simplify(substitute(UOp(taps.src(0)), values)))->as_int();
  };
  const UOp few = bounded(windows(6, 16));
  EXPECT_EQ(rows(few, 0), 3);
  EXPECT_EQ(rows(few, 2), 5);
  EXPECT_EQ(rows(few, 5), 3);
  EXPECT_EQ(rows(bounded(windows(100, 16)), 0), 5) << "few rows are at an edge";
}

// Where a bound is computed of numbers that nothing is known of, what is made for the loop has room for as many iterations as it had.
TEST(BoundLoops, HaveNoMoreIterationsThanTheyHad) {
  const UOp sums = bounded(masked_sums(7, 8, [](const UOp& i, const UOp& k) {
    const UOp place = cast(cast(cast(cast(i, DType::int32), DType::float32) * constant(DType::float32, 0.5), DType::int32), DType::index);
    const UOp near = place * 2 + k;
    return (near < 9) & logical_not(near < 1) & (place < 3) & logical_not(place < 0);
  }));
  const UOp loop = kernel_axes(sums).back();
  EXPECT_EQ(constant_size(loop), 0) << "it is bounded";
  EXPECT_EQ(most_iterations(loop), 8);
}

TEST(BoundLoops, LittleThatIsLeftOutStays) {
  const UOp sums = masked_sums(32, 32, [](const UOp& i, const UOp& k) { return k < i + 25; });
  EXPECT_EQ(steps(bounded(sums), 0), 32);
}

TEST(BoundLoops, SumsThatShareALoopShareItsEnd) {
  // nested_sums: one sum is below the diagonal, the other of all.
  EXPECT_EQ(steps(bounded(test::nested_sums(16, 4)), 0), 4);
  const UOp loop = kernel_axes(bounded(test::nested_sums(16, 4)))[1];
  EXPECT_EQ(constant_size(loop), 16);
}

TEST(BoundLoops, AttentionSkipsMaskedScores) {
  const UOp attention = bounded(test::joined_attention(32, 32, 4, {}, true), "UPCAST(0,4) UNROLL(3,4)");
  EXPECT_EQ(steps(attention, 0), 1);
  EXPECT_EQ(steps(attention, 5), 6);
}

// What a mask replaces is not computed, unless something else uses it.
TEST(BoundLoops, ASumThatNobodyTakesHasNoSteps) {
  const UOp i = loop(32, 0), j = range(index_const(32), {.id = 1, .order = 1}), k = reduce_loop(16, 2);
  const UOp sum = reduce_over(Op::ADD, read(arg(1, 512), i * 16 + k) * read(arg(2, 512), j * 16 + k), {k});
  const auto last = [&](const UOp& value, int64_t at) {
    const UOp sink = bounded(kernel({ended(write(arg(0, 1024), i * 32 + j, value), {i, j})}), "UPCAST(0,4) LANE(1,8)");
    const std::vector<UOp> axes = kernel_axes(sink);
    NodeMap<UOp> values;
    values[axes[0]] = index_const(3);
    values[axes[1]] = index_const(at);
    return const_value(simplify(substitute(UOp(axes[2].src(0)), values)))->as_int();
  };
  const UOp masked = where(i < j, constant(DType::float32, -1), sum * 2);
  EXPECT_EQ(last(masked, 1), 16) << "rows 12 to 15 take columns 8 to 15";
  EXPECT_EQ(last(masked, 2), 0);
  EXPECT_EQ(last(where(logical_not(i < j), sum, constant(DType::float32, 0)), 2), 0);
  EXPECT_EQ(last(masked + sum, 2), 16);
}

/// out[i] = sum over k of value(w[i, k]) * x[k], where w is known to be 0 behind the diagonal
UOp weighted(const std::function<UOp(const UOp& w, const UOp& before)>& value) {
  const UOp i = loop(32, 0), k = reduce_loop(32, 1), before = logical_not(i < k);
  const UOp w(Op::WEIGHT, DType::float32, {read(arg(1, 1024), i * 32 + k), before});
  return kernel({ended(write(arg(0, 32), i, reduce_over(Op::ADD, value(w, before) * read(arg(2, 32), k), {k})), {i})});
}

TEST(BoundLoops, WhatAWeightIsZeroForIsLeftOut) {
  const UOp zero = constant(DType::float32, 0);
  const auto is_weight = [](const UOp& u) { return u.is(Op::WEIGHT); };
  const std::function<UOp(const UOp&, const UOp&)> products[] = {
      [](const UOp& w, const UOp&) { return w; }, [](const UOp& w, const UOp&) { return (read(arg(3, 1), index_const(0)) - 2) * w; },
      [&](const UOp& w, const UOp& before) { return where(before, w * 3, zero); },  // as a mask's gradient has it
  };
  for (const auto& product : products) {
    const UOp sums = bounded(weighted(product));
    EXPECT_EQ(steps(sums, 0), 1);
    EXPECT_EQ(steps(sums, 20), 21);
    EXPECT_TRUE(std::ranges::none_of(toposort(sums), is_weight));
  }
  // A zero that a WHERE puts in a product's place may meet an infinity.
  EXPECT_EQ(steps(bounded(weighted([&](const UOp& w, const UOp& before) { return where(before, w.src(0), zero); })), 0), 32);
}

// No term may be left out where a value that is not idle takes its place, or where the loop decides nothing.
TEST(BoundLoops, WhatCountsStays) {
  const UOp i = loop(32, 0), k = reduce_loop(32, 1), x = read(arg(1, 1024), i * 32 + k), zero = constant(DType::float32, 0);
  const auto sum_of = [&](const UOp& term, Op op = Op::ADD) {
    return bounded(kernel({ended(write(arg(0, 32), i, reduce_over(op, term, {k})), {i})}));
  };
  EXPECT_EQ(steps(sum_of(where(k < i, x, constant(DType::float32, 1))), 0), 32);
  EXPECT_EQ(steps(sum_of(where(k < i, x, zero), Op::MAX), 0), 32);
  EXPECT_EQ(steps(sum_of(where(k < i, x, constant(min_value(DType::float32)))), 0), 32);
  EXPECT_EQ(steps(sum_of(where(k < i, x, zero) + x), 0), 32);
  EXPECT_EQ(steps(sum_of(where(ne(k, i), x, zero)), 0), 32);
  EXPECT_EQ(steps(sum_of(where(k < i, x, zero) * x), 0), 32) << "0 times infinity";
  EXPECT_EQ(steps(sum_of(where(k < i, x, constant(min_value(DType::float32))), Op::MAX), 5), 5);
  EXPECT_EQ(steps(sum_of(-where(k < i, x, zero)), 5), 5);
}

}  // namespace
}  // namespace tinygrad::codegen
