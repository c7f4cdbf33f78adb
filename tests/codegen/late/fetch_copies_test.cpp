// Tiles in memory of the group that are filled by asynchronous copies: what is FETCHed, where the WAITs stand, and that the interpreted
// device finds what is missing. PTX of it runs in tests/runtime/backend/ptx_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "codegen/choose/heuristic_opts.h"
#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "program/run_kernel.h"
#include "uop/build.h"

namespace tinygrad::codegen {
namespace {

using test::count;
using test::is_group;

const Target target = cuda_target("sm_80");
const UOp product = test::matmul(64, 64, 64), odd_product = test::matmul(20, 24, 19);
const std::string tile = "UPCAST(0,4) UPCAST(1,4) LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) ";

UOp compiled(const UOp& kernel, const std::string& opts, const Target& t = target) {
  return full_rewrite(test::with_opts(kernel, parse_opts(opts)), t, {.noopt = true, .spec = 1});
}

size_t stores_to_group(const UOp& linear) {
  return count(linear, [](const UOp& u) { return u.is(Op::STORE) && is_group(u.src(0)); });
}

std::vector<int> pending(const UOp& linear) {
  std::vector<int> out;
  for (const UOp& u : linear.src())
    if (u.is(Op::WAIT)) out.push_back(u.arg_as<WaitArg>().pending);
  return out;
}

TEST(Fetch, TilesAreCopiedWithoutGoingThroughRegisters) {
  const UOp linear = compiled(product, tile + "STAGE(2,1,group,1) STAGE(2,2,group,1)");
  EXPECT_EQ(count(linear, Op::FETCH), 2u);
  EXPECT_EQ(stores_to_group(linear), 0u);
  EXPECT_EQ(pending(linear), (std::vector{0, 0}));
  for (const UOp& u : linear.src())
    if (u.is(Op::FETCH)) {
      EXPECT_EQ(u.src(0).arg_as<IndexArg>().width, 4);
    }
}

TEST(Fetch, EachIterationWaitsForItsOwnTiles) {
  for (const int depth : {2, 3, 4}) {
    const UOp linear = compiled(product, tile + fmt::format("STAGE(2,1,group,{0}) STAGE(2,2,group,{0})", depth));
    EXPECT_EQ(count(linear, Op::FETCH), size_t(2 * depth)) << "of each tile in the prologue and in the loop";
    EXPECT_EQ(count(linear, Op::COMMIT), size_t(depth));
    EXPECT_EQ(pending(linear), (std::vector{depth - 2, 0})) << "in the loop and behind it";
    EXPECT_EQ(count(linear, Op::BARRIER), 2u);
  }
}

TEST(Fetch, CopiesBeginBeforeTheArithmeticThatTheyGoOnBeside) {
  // In the second one a work-item copies several pieces, in a loop.
  for (const UOp& linear : {compiled(product, tile + "STAGE(2,1,group,2) STAGE(2,2,group,2)"),
                            compiled(product, tile + "UNROLL(2,4) STAGE(2,1,group,2) STAGE(2,2,group,2)")}) {
    const auto list = linear.src();
    const auto waits = std::ranges::find_if(list, [](const UOp& u) { return u.is(Op::WAIT); });
    const auto position = [&](auto is) { return std::find_if(waits, list.end(), is) - list.begin(); };
    const auto barrier = position([](const UOp& u) { return u.is(Op::BARRIER); }),
               commit = position([](const UOp& u) { return u.is(Op::COMMIT); }),
               read = position([](const UOp& u) { return u.is(Op::LOAD) && is_group(u.src(0)); });
    EXPECT_LT(barrier, commit);
    EXPECT_LT(commit, read);
  }
}

TEST(Fetch, WhatNoCopyTakesIsStored) {
  // Three of nine halves in a row: runs of one element, of 2 bytes.
  const UOp narrow = test::half_matmul(16, 9, 16);
  const UOp linear = compiled(narrow, "LOCAL(0,4) LOCAL(1,3) UNROLL(2,4) STAGE(2,2,group,1)");
  EXPECT_GT(stores_to_group(linear), 0u);
  for (const Op op : {Op::FETCH, Op::COMMIT, Op::WAIT}) EXPECT_EQ(count(linear, op), 0u) << name(op);
  EXPECT_EQ(count(compiled(product, tile + "STAGE(2,1,group,2)", interp_target()), Op::FETCH), 0u) << "the target has none";
  EXPECT_EQ(count(compiled(product, "GROUP(2,8)"), Op::FETCH), 0u) << "partial sums are computed";
}

TEST(Fetch, OneMaskIsEnoughWhereItemsAreLeftOver) {
  // 64 elements of each factor, for 32 items.
  const UOp linear = compiled(product, "UPCAST(0,4) UPCAST(1,4) LOCAL(0,4) LOCAL(1,8) UNROLL(2,4) STAGE(2,1,group,1)");
  for (const UOp& u : linear.src())
    if (u.is(Op::FETCH)) {
      ASSERT_EQ(u.src_count(), 4u) << "those without a part do nothing";
      EXPECT_TRUE(is_const(u.src(2), 1)) << "the others copy what there is";
    }
}

TEST(Fetch, MasksBecomeZeros) {
  const UOp linear =
      compiled(odd_product, "PADTO(0,32) PADTO(1,32) PADTO(2,32) LOCAL(0,8) LOCAL(1,8) UNROLL(2,8) STAGE(2,1,group,2) STAGE(2,2,group,2)");
  EXPECT_GT(count(linear, [](const UOp& u) { return u.is(Op::FETCH) && u.src_count() > 2; }), 0u);
}

TEST(Fetch, GivesTheSame) {
  struct Case {
    UOp kernel;
    std::string opts;
  };
  const UOp half = test::half_matmul(64, 32, 64);
  const Case cases[] = {
      {product, tile + "STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {product, tile + "STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {product, tile + "STAGE(2,1,group,3) STAGE(2,2,group,3)"},
      {product, tile + "STAGE(2,1,group,3) STAGE(2,2,group,1)"},
      {product,
       "BLOCK(2,16) " + std::string("UPCAST(0,4) UPCAST(1,4) LOCAL(0,4) LOCAL(1,4) UNROLL(3,4) STAGE(2,1,group,2) STAGE(2,2,group,2)")},
      {product, "LANE(1,4) LOCAL(0,4) UNROLL(2,4) STAGE(2,2,group,3)"},
      {odd_product, "LOCAL(0,4) LOCAL(1,4) UNROLL(2,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {odd_product, "PADTO(0,32) PADTO(1,32) PADTO(2,32) LOCAL(0,8) LOCAL(1,8) UNROLL(2,8) STAGE(2,1,group,3) STAGE(2,2,group,3)"},
      {test::transpose(30, 17), "LOCAL(0,8) LOCAL(1,8) STAGE(1,1,group,1)"},
      {test::transpose(32, 64), "LOCAL(0,8) LOCAL(1,8) STAGE(1,1,group,1)"},
      {test::convolution(3, 9, 4, 3), "LOCAL(0,3) LOCAL(1,4) STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {half, "TC(0,0) UPCAST(0,2) UPCAST(1,2) LOCAL(0,2) LOCAL(1,2) UNROLL(2,2) STAGE(2,1,group,1) STAGE(2,2,group,1)"},
      {test::half_matmul(64, 32, 128), "TC(0,0) UPCAST(0,2) LOCAL(0,2) LOCAL(1,2) UNROLL(2,2) STAGE(2,1,group,3) STAGE(2,2,group,3)"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.opts);
    EXPECT_EQ(test::difference_on_interp(c.kernel, parse_opts(c.opts), target), "");
  }
}

/// What is wrong with a program, as the interpreted device sees it; "" if nothing is.
std::string fault(const UOp& linear) {
  try {
    test::run_on_interp(linear, test::some_inputs(product));
    return {};
  } catch (const InternalError& e) {
    return e.what();
  }
}

/// The program without its instructions of a kind, or with others instead.
UOp changed(const UOp& linear, Op op, const std::function<UOp(const UOp&)>& f) {
  UOps kept;
  for (const UOp& u : linear.src())
    if (const UOp x = u.is(op) ? f(u) : u) kept.push_back(x);
  return linear.with_src(kept);
}

TEST(Fetch, TheInterpretedDeviceFindsWhatIsMissing) {
  const UOp linear = compiled(product, tile + "STAGE(2,1,group,3) STAGE(2,2,group,3)");
  const auto without = [&](Op op) { return fault(changed(linear, op, [](const UOp&) { return UOp(); })); };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_EQ(fault(linear), "");
  EXPECT_TRUE(has(without(Op::WAIT), "was not waited for")) << without(Op::WAIT);
  EXPECT_TRUE(has(without(Op::COMMIT), "was not waited for")) << without(Op::COMMIT);
  EXPECT_TRUE(has(without(Op::BARRIER), "race")) << without(Op::BARRIER);
  const UOp too_early = changed(linear, Op::WAIT, [](const UOp& u) { return u.with_arg(WaitArg{u.arg_as<WaitArg>().pending + 1}); });
  EXPECT_TRUE(has(fault(too_early), "was not waited for")) << fault(too_early);
}

TEST(Fetch, HeuristicsStageProducts) {
  const auto chosen = [](const UOp& kernel) { return to_string(heuristic_opts(kernel, target)); };
  const std::string floats = chosen(test::matmul(512, 512, 512)), halves = chosen(test::half_matmul(512, 512, 512));
  for (const std::string& opts : {floats, halves}) EXPECT_NE(opts.find("STAGE(2,1,group,3) STAGE(2,2,group,3)"), std::string::npos) << opts;
  EXPECT_EQ(halves.substr(0, 32), "TC(0,0) UPCAST(0,4) UPCAST(1,4) ") << halves;
  EXPECT_EQ(chosen(test::softmax(4096, 512)).find("STAGE"), std::string::npos);
  for (const UOp& kernel : {test::matmul(512, 512, 512), test::half_matmul(512, 512, 512)}) {
    const UOp linear = full_rewrite(kernel, target, {.spec = 1});
    EXPECT_GT(count(linear, Op::FETCH), 0u);
    EXPECT_EQ(stores_to_group(linear), 0u);
    for (const UOp& u : linear.src())
      if (u.is(Op::FETCH)) {
        EXPECT_EQ(u.src(0).arg_as<IndexArg>().width * int64_t(itemsize(u.src(0).dtype())), 16);
      }
  }
}

}  // namespace
}  // namespace tinygrad::codegen
