// What goes past the caches, and what is fetched before it is needed.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "uop/graph.h"

namespace tinygrad::codegen {
namespace {

using namespace test;

constexpr const char* const kTile = "LANE(1,16) UPCAST(0,4)";

/// out[i, j] = sum over k of a[i, k] * b[k, j] + r[i, j]; `in_place`: r is out.
UOp product_and_sum(int64_t m, int64_t n, int64_t k_size, bool in_place = false) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(k_size, 2), at = i * n + j;
  const UOp sum = reduce_over(Op::ADD, read(arg(1, m * k_size), i * k_size + k) * read(arg(2, k_size * n), k * n + j), {k});
  return kernel({ended(write(arg(0, m * n), at, sum + read(arg(in_place ? 0 : 3, m * n), at)), {i, j})}, parse_opts(kTile));
}

UOp lowered(const UOp& kernel, int64_t l2_bytes, int64_t l3_bytes, const char* arch = "znver4") {
  Target t = cpu_target(arch);
  t.l2_bytes = l2_bytes;
  t.l3_bytes = l3_bytes;
  return full_rewrite(kernel, t, {.noopt = true, .spec = 3});
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
  return places(linear, [](const UOp& u) { return u.is(Op::STORE) && u.src(0).arg_as<IndexArg>().streams; }).size();
}
size_t prefetches(const UOp& linear) {
  return places(linear, [](const UOp& u) { return u.is(Op::PREFETCH); }).size();
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
  EXPECT_EQ(prefetches(lowered(product_and_sum(16, 64, 40), 1 << 20, 1 << 20)), 0u);                 // the second cache holds it
  EXPECT_EQ(prefetches(lowered(product_and_sum(16, 64, 2), 1 << 10, 1 << 20)), 0u);                  // hints would cost more than the loop
  EXPECT_EQ(prefetches(lowered(product_and_sum(16, 64, 40), 1 << 10, 1 << 20, "neoverse-n1")), 0u);  // not known to help there
}

TEST(CacheHints, WholeVectorsOfLargeResultsGoPastTheCaches) {
  EXPECT_EQ(streams(lowered(product_and_sum(16, 64, 40), 1 << 10, 1 << 12)), 4u);
  EXPECT_EQ(streams(lowered(product_and_sum(16, 64, 40), 1 << 10, 1 << 14)), 0u);        // half of the last cache holds them
  EXPECT_EQ(streams(lowered(product_and_sum(16, 64, 40, true), 1 << 10, 1 << 12)), 0u);  // they are loaded
  EXPECT_EQ(streams(lowered(product_and_sum(16, 56, 40), 1 << 10, 1 << 12)), 0u);        // rows begin within a line
  EXPECT_EQ(streams(lowered(elementwise(1 << 12, parse_opts("LANE(0,16)")), 1 << 10, 1 << 12)), 1u);
  EXPECT_EQ(streams(lowered(elementwise(1 << 12, parse_opts("LANE(0,4)")), 1 << 10, 1 << 12)), 0u);  // parts of a line
}

}  // namespace
}  // namespace tinygrad::codegen
