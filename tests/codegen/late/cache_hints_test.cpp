// What goes past the caches, and what is fetched before it is needed.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/late/load_behind_loops.h"
#include "codegen/opt/parse_opts.h"
#include "spec/verify.h"
#include "target/target.h"
#include "uop/graph.h"

namespace tinygrad::codegen {
namespace {

using namespace test;

constexpr const char* kTile = "LANE(1,16) UPCAST(0,4)";

UOp lowered(const UOp& kernel, int64_t l2_bytes, int64_t l3_bytes, const char* arch = "znver4", const char* opts = kTile) {
  Target t = cpu_target(arch);
  t.l2_bytes = l2_bytes;
  t.l3_bytes = l3_bytes;
  return full_rewrite(with_opts(kernel, parse_opts(opts)), t, {.noopt = true, .spec = 3});
}

/// Places in the program.
std::vector<size_t> places(const UOp& linear, auto&& is) {
  std::vector<size_t> out;
  for (size_t i = 0; i < linear.src_count(); ++i)
    if (is(linear.src(i))) out.push_back(i);
  return out;
}
auto of(Op op, int32_t slot) {
  return [=](const UOp& u) { return u.is(op) && u.src(0).src(0).is(Op::PARAM) && u.src(0).src(0).arg_as<ParamArg>().slot == slot; };
}
size_t streams(const UOp& linear) {
  return count(linear, [](const UOp& u) { return u.is(Op::STORE) && u.src(0).arg_as<IndexArg>().streams; });
}
TEST(CacheHints, WhatIsJoinedWithASumIsFetchedInFrontOfItsLoop) {
  const UOp linear = lowered(product_and_sum(16, 64, 40), 1 << 10, 1 << 20);
  const auto loop_at = places(linear, [](const UOp& u) { return u.is(Op::RANGE) && u.arg_as<RangeArg>().kind == AxisKind::reduce; });
  const auto end_at = places(linear, [&](const UOp& u) { return u.is(Op::END) && u.src(1) == linear.src(loop_at.at(0)); });
  const auto loads = places(linear, of(Op::LOAD, 3)), fetched = places(linear, of(Op::PREFETCH, 3)),
             written = places(linear, of(Op::PREFETCH, 0));
  ASSERT_EQ(loads.size(), 4u);
  EXPECT_EQ(fetched.size(), 4u);
  EXPECT_EQ(written.size(), 4u);
  for (const size_t i : fetched) EXPECT_LT(i, loop_at[0]);
  for (const size_t i : loads) EXPECT_GT(i, end_at.at(0));
}

TEST(CacheHints, NearOrShortWorkIsNotPrefetched) {
  EXPECT_EQ(count(lowered(product_and_sum(16, 64, 40), 1 << 20, 1 << 20), Op::PREFETCH), 0u);  // the second cache holds it
  EXPECT_EQ(count(lowered(product_and_sum(16, 64, 2), 1 << 10, 1 << 20), Op::PREFETCH), 0u);   // hints would cost more than the loop
  EXPECT_EQ(count(lowered(product_and_sum(16, 64, 40), 1 << 10, 1 << 20, "neoverse-n1"), Op::PREFETCH), 0u);  // not known to help there
}

// A work-item keeps its sums in registers, and has none for what the sums are joined with.
TEST(CacheHints, ManyLoadsForWhatFollowsALoopStandBehindIt) {
  const auto loads_behind = [](const char* opts) {
    const UOp linear =
        full_rewrite(with_opts(product_and_sum(64, 64, 40), parse_opts(opts)), amd_target("gfx942"), {.noopt = true, .spec = 3});
    const auto ends = places(linear, [](const UOp& u) { return u.is(Op::END) && u.src(1).arg_as<RangeArg>().kind == AxisKind::reduce; });
    const auto loads = places(linear, of(Op::LOAD, 3));
    EXPECT_EQ(count(linear, Op::PREFETCH), 0u);
    return std::pair(loads.size(), std::ranges::count_if(loads, [&](size_t i) { return i > ends.at(0); }));
  };
  EXPECT_EQ(loads_behind("UPCAST(0,8) UPCAST(1,8)"), std::pair(size_t{16}, ptrdiff_t{16}));  // of four elements each
  EXPECT_EQ(loads_behind("UPCAST(0,4)"), std::pair(size_t{4}, ptrdiff_t{0}));                // they come while the loop runs
}

/// A linear program: old = p[0]; p[0] = 1; r[0] = old + sum over k of q[k]
UOp load_store_and_sum() {
  const auto number = [](DType d, double x) { return constant(d, x); };
  const auto argument = [&](int32_t slot, double n) {
    return UOp(Op::PARAM, DType::float32, {number(DType::int32, n)}, ParamArg{.slot = slot});
  };
  const UOp zero = number(DType::int32, 0), p = argument(0, 1 << 12), q = argument(1, 64), r = argument(2, 1 << 12);
  const UOp at = index(p, zero), old = load(at), written = store(at, number(DType::float32, 1));
  const UOp sum = buffer(DType::float32, {.id = 1, .size = 1, .scope = Scope::reg}), place = index(sum, zero);
  const UOp cleared = store(place, number(DType::float32, 0));
  const UOp k(Op::RANGE, DType::int32, {number(DType::int32, 64)}, RangeArg{.id = 0, .kind = AxisKind::reduce});
  const UOp from = index(q, k), x = load(from), so_far = load(place), added = so_far + x, kept = store(place, added);
  const UOp total = load(place.with_arg(IndexArg{.state = 1})), result = old + total, to = index(r, zero);
  const UOps program{p,
                     q,
                     r,
                     sum,
                     at,
                     old,
                     written,
                     to,
                     place,
                     cleared,
                     k,
                     from,
                     x,
                     so_far,
                     added,
                     kept,
                     ended(kept, {k}),
                     total.src(0),
                     total,
                     result,
                     store(to, result)};
  UOps list;
  for (const UOp& u : toposort(UOp(Op::SINK, DType::void_, program)))
    if (u.is(Op::CONST)) list.push_back(u);
  list.append(program.begin(), program.end());
  return UOp(Op::LINEAR, DType::void_, list, LinearArg{1});
}

TEST(CacheHints, NoLoadMovesAcrossAStore) {
  Target t = cpu_target("znver4");
  t.l2_bytes = 1 << 10;
  const UOp before = load_store_and_sum(), after = load_behind_loops(before, t);
  spec::verify_linear(after);
  EXPECT_GT(count(after, Op::PREFETCH), 0u);
  const auto loads = places(after, of(Op::LOAD, 0)), stores = places(after, of(Op::STORE, 0));
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_LT(loads[0], stores.at(0));
}

// B of A*B: a row for each step.
TEST(CacheHints, RowsFarApartAreFetchedStepsAhead) {
  const auto fetched = [](int64_t columns, int64_t steps, int64_t l3_bytes) {
    const UOp linear = lowered(product_and_sum(16, columns, steps), 1 << 12, l3_bytes);
    const auto ahead = places(linear, of(Op::PREFETCH, 2)), loads = places(linear, of(Op::LOAD, 2));
    for (const size_t i : ahead) EXPECT_GT(i, loads.at(0));
    return ahead.size();
  };
  EXPECT_EQ(fetched(512, 256, 1 << 16), 1u);
  EXPECT_EQ(fetched(64, 256, 1 << 14), 0u);   // pages have many of them
  EXPECT_EQ(fetched(512, 20, 1 << 14), 0u);   // the loop is too short
  EXPECT_EQ(fetched(512, 256, 1 << 20), 0u);  // half of the last cache holds them
}

TEST(CacheHints, WholeVectorsOfLargeResultsGoPastTheCaches) {
  EXPECT_EQ(streams(lowered(product_and_sum(16, 64, 40), 1 << 10, 1 << 12)), 4u);
  EXPECT_EQ(streams(lowered(product_and_sum(16, 64, 40), 1 << 10, 1 << 14)), 0u);        // half of the last cache holds them
  EXPECT_EQ(streams(lowered(product_and_sum(16, 64, 40, true), 1 << 10, 1 << 12)), 0u);  // they are loaded
  EXPECT_EQ(streams(lowered(product_and_sum(16, 56, 40), 1 << 10, 1 << 12)), 0u);        // rows begin within a line
  EXPECT_EQ(streams(lowered(elementwise(1 << 12), 1 << 10, 1 << 12, "znver4", "LANE(0,16)")), 1u);
  EXPECT_EQ(streams(lowered(elementwise(1 << 12), 1 << 10, 1 << 12, "znver4", "LANE(0,4)")), 0u);  // parts of a line
  // Also where the end is masked, or a line would go one way in part and the other way in part.
  EXPECT_EQ(streams(lowered(elementwise((1 << 12) - 3), 1 << 10, 1 << 12, "znver4", "LANE(0,16) THREAD(0,256)")), 1u);
}

}  // namespace
}  // namespace tinygrad::codegen
