// What a plan costs follows from the plan alone, and a plan that is looked for is as good as the ones that a search begins with.
#include "codegen/choose/choose_plan.h"

#include <gtest/gtest.h>

#include "codegen/choose/cpu_candidates.h"
#include "codegen/choose/plan_opts.h"
#include "codegen/codegen.h"
#include "codegen/kernel_axes.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"

namespace tinygrad::codegen {
namespace {

/// Calls use(nest) for the nest of each kernel.
template <class Use>
void for_nests(Use&& use) {
  const Target target = cpu_target("x86-64-v4");
  for (const UOp& kernel : {test::matmul(512, 512, 512), test::matmul(64, 4000, 300), test::softmax(300, 1000), test::row_sums(4000, 700),
                            test::joined_attention(128, 128, 64), test::convolution(16, 100, 3, 8), test::two_products(64, 300, 100, 200),
                            test::nested_sums(64, 1000), test::elementwise(100000)}) {
    const UOp simple = simplified_kernel(kernel);
    const Nest nest = analyze_nest(simple, simple.src(0));
    use(CpuNest(nest, target, {.updates_in_place = updates_in_place(simple)}));
  }
}

TEST(CpuPlan, ItsCostFollowsFromItAlone) {
  for_nests([](const CpuNest& nest) {
    const CostedPlan best = choose_plan(nest);
    if (best.plan.joined_steps == 1) {
      EXPECT_EQ(cost_of(nest, best.plan).total(), best.cost);
    }
    for (const CostedPlan& c : cheapest_plans(nest, 8)) EXPECT_EQ(cost_of(nest, c.plan).total(), c.cost);
  });
}

TEST(CpuPlan, CandidatesBeginWithTheCheapest) {
  for_nests([](const CpuNest& nest) {
    const std::vector<CostedPlan> plans = cheapest_plans(nest, 8);
    EXPECT_EQ(plans.size(), 8u);
    EXPECT_TRUE(std::ranges::is_sorted(plans, std::less(), &CostedPlan::cost));
  });
}

TEST(CpuPlan, TermsAreOfWhatThePlanHas) {
  for_nests([](const CpuNest& nest) {
    for (const auto& [plan, total] : cheapest_plans(nest, 8)) {
      const CpuCost cost = cost_of(nest, plan);
      EXPECT_EQ(cost.panels > 0, plan.operands.panels() != 0);
      EXPECT_EQ(cost.windows > 0, plan.operands.windows != 0);
      EXPECT_EQ(cost.partial_results > 0, plan.blocks.axes != 0);
      EXPECT_GT(cost.work, 0);
      EXPECT_GE(total, cost.work);
    }
  });
}

CostedPlan plan_for(const UOp& kernel, const char* arch) {
  const UOp simple = simplified_kernel(kernel);
  const Nest nest = analyze_nest(simple, simple.src(0));
  const Target target = cpu_target(arch);
  return choose_plan(CpuNest(nest, target, {.updates_in_place = false}));
}

TEST(CpuPlan, FewRowsReadAMatrixInStreams) {
  for (const char* arch : {"x86-64-v3", "znver3", "znver4", "neoverse-n1"})
    for (const int64_t rows : {1, 2, 4, 8}) {
      SCOPED_TRACE(std::string(arch) + ", " + std::to_string(rows) + " rows");
      const CostedPlan few = plan_for(test::matmul(rows, 4096, 4096), arch);
      EXPECT_GT(few.plan.blocks.axes, 0u);
      EXPECT_EQ(few.plan.operands.resident, 0u);
      EXPECT_LE(few.plan.blocks.block + few.plan.tile.copies(), 16);
    }
  // One whose rows the caches hold is no stream.
  EXPECT_EQ(plan_for(test::matmul(4, 512, 512), "znver3").plan.blocks.axes, 0u);
}

TEST(CpuPlan, AFactorOfFewColumnsIsCopiedWhole) {
  const CpuPlan few = plan_for(test::matmul(4809, 66, 1432), "znver3").plan;
  EXPECT_TRUE(few.operands.whole);
  EXPECT_EQ(few.blocks.axes, 0u);
  // The second cache does not hold that.
  EXPECT_FALSE(plan_for(test::matmul(4809, 132, 1432), "znver3").plan.operands.whole);
}

// What is written out of attention's step, each copy anew, is bounded: of a few channels a tile would have all of many rows.
TEST(CpuPlan, FewChannelsOfAttentionAreNoLongerProgram) {
  for (const int64_t channels : {1, 2, 3, 4, 8, 16})
    for (const int64_t rows : {40, 120, 256}) {
      const Tile tile = plan_for(test::joined_attention(rows, 120, 128, {}, false, channels), "znver3").plan.tile;
      EXPECT_LE(tile.along(0) * 128, 1024) << rows << " rows, " << channels << " channels";
    }
}

TEST(CpuPlan, ThreadsSayOnlyIntoHowManyChunks) {
  const auto opts_for = [](const UOp& kernel, int threads) {
    Target target = cpu_target("znver3");
    target.threads = threads;
    const UOp simple = simplified_kernel(kernel);
    const Nest nest = analyze_nest(simple, simple.src(0));
    const CpuNest in(nest, target, {.updates_in_place = false});
    std::vector<Opt> opts = opts_of(in, choose_plan(in).plan);
    const auto is_thread = [](const Opt& o) { return o.op == OptOp::THREAD; };
    const auto chunks = std::ranges::find_if(opts, is_thread);
    const int32_t count = chunks == opts.end() ? 1 : chunks->arg;
    opts.erase(std::remove_if(opts.begin(), opts.end(), is_thread), opts.end());
    return std::pair(to_string(opts), count);
  };
  for (const int64_t rows : {1, 4, 16, 64, 96})
    for (const int64_t columns : {4096, 11008}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(columns) + " columns");
      const UOp kernel = test::matmul(rows, columns, 4096);
      for (const int threads : {1, 2, 16, 64}) EXPECT_EQ(opts_for(kernel, threads).first, opts_for(kernel, 0).first) << threads;
    }
  EXPECT_LT(opts_for(test::matmul(4, 4096, 4096), 2).second, opts_for(test::matmul(4, 4096, 4096), 16).second);
}

/// Calls use(plan without cache blocks, cache blocks, tile) for a sample of a nest's plans.
template <class Use>
void for_plans(const CpuNest& nest, Use&& use) {
  std::vector<Lanes> all = lane_candidates(nest);
  if (all.size() > 4) all.resize(4);
  for (const Operands& operands : operand_candidates(nest))
    for (const Lanes& lanes : all) {
      const CpuPlan plan{.lanes = lanes, .operands = operands};
      const std::vector<Tile> tiles = tile_candidates(PlannedLoops(nest, plan), true);
      for (const CacheBlocks& blocks : operands.resident && !operands.whole ? block_candidates(nest) : std::vector<CacheBlocks>{{}})
        for (size_t i = 0; i < tiles.size(); i += 7) use(plan, blocks, tiles[i]);
    }
}

// What a search leaves out because it costs more already by a few terms, or without its cache blocks.
TEST(CpuPlan, WhatItsCostBeginsWithIsNoMoreThanAllOfIt) {
  for_nests([](const CpuNest& nest) {
    for_plans(nest, [&](const CpuPlan& plan, const CacheBlocks& blocks, const Tile& tile) {
      CpuPlan whole = plan;
      whole.blocks = blocks;
      const PlannedLoops loops(nest, plan), with_blocks(nest, whole);
      const TileCosts costs(loops), costs_with_blocks(with_blocks);
      const CpuCost begun = costs.begin(tile);
      const double total = costs_with_blocks.of(tile).total();
      EXPECT_LE(begun.total(), total);
      EXPECT_FALSE(costs_with_blocks.below(tile, begun, total));
      const auto found = costs_with_blocks.below(tile, begun, total * 1.0001);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->total(), total);
    });
  });
}

TEST(CpuPlan, NoTileOfItsVectorsAndOperandsIsBetter) {
  for_nests([](const CpuNest& nest) {
    if (nest.is_joined()) return;
    const auto& [plan, cost] = choose_plan(nest);
    const PlannedLoops loops(nest, plan);
    const TileCosts costs(loops);
    const bool may_overlap = !nest.around.updates_in_place && nest.nest.reduces > 0;
    for (const Tile& t : tile_candidates(loops, may_overlap)) EXPECT_GE(costs.of(t).total(), cost * 0.999);
  });
}

/// The plan for a kernel on a processor with 16 registers of 256 bits, 32 KiB of the first cache and 512 KiB of the second.
CpuPlan plan_on_avx2(const UOp& kernel) {
  const UOp simple = simplified_kernel(kernel);
  const Target target = cpu_target("znver3");
  const Nest nest = analyze_nest(simple, simple.src(0));
  return choose_plan(CpuNest(nest, target, {})).plan;
}

// A wide panel that the first cache does not hold is read from the second faster than that gives it.
TEST(CpuPlan, TilesReadPanelsNoFasterThanTheSecondCacheGives) {
  const Tile near = plan_on_avx2(test::matmul(2048, 196, 128)).tile, far = plan_on_avx2(test::matmul(128, 196, 512)).tile;
  EXPECT_LE(far.count[1], 3) << "vectors that each step loads from the second cache";
  EXPECT_GE(far.count[0], 4);
  EXPECT_EQ(near.count[1], 5) << "which fits the size of 196 best";
}

// The taps of a window read elements that their neighbours read as well: a gradient of weights is of a fifth of what its axes multiply to.
TEST(CpuPlan, OverlappingWindowsAreInMemoryOnce) {
  const int64_t images = 512, channels = 32, side = 24, taps = 5, padded = side + taps - 1;
  const UOp c = test::loop(channels, 0), ky = test::loop(taps, 1), kx = test::loop(taps, 2);
  const UOp n = test::reduce_loop(images, 3), y = test::reduce_loop(side, 4), x = test::reduce_loop(side, 5);
  const UOp gradient = test::read(test::arg(1, images * channels * side * side), ((n * channels + c) * side + y) * side + x);
  const UOp image = test::read(test::arg(2, images * padded * padded), (n * padded + y + ky) * padded + x + kx);
  const UOp sum = test::reduce_over(Op::ADD, gradient * image, {n, y, x});
  const UOp at = (c * taps + ky) * taps + kx;
  const UOp simple =
      simplified_kernel(test::kernel({test::ended(test::write(test::arg(0, channels * taps * taps), at, sum), {c, ky, kx})}));
  const Target target = cpu_target("znver3");
  const Nest loops = analyze_nest(simple, simple.src(0));
  const CpuNest nest(loops, target, {});
  const CpuPlan plan{.lanes = {{{5, 8}}}, .tile = {{0, 2}, {2, 5}}};
  const double of_gradient = 4.0 * double(images * channels * side * side), of_images = 4.0 * double(images * padded * padded);
  const double again = of_gradient * (taps - 1) + of_images * (double(channels) / 2 - 1);
  EXPECT_LE(cost_of(nest, plan).traffic, again / nest.rates.l3 * 1.01);
}

// Vectors along the terms need no packing of rows, but load both factors for each of a tile's results.
TEST(CpuPlan, VectorsAlongTermsAreWeighedAgainstThoseAlongResults) {
  const UOp i = test::loop(256, 0), j = test::loop(49, 1), k = test::reduce_loop(1024, 2);
  const UOp product = test::read(test::arg(2, 256 * 1024), i * 1024 + k) * test::read(test::arg(1, 1024 * 49), k * 49 + j);
  const UOp sum = test::reduce_over(Op::ADD, product, {k});
  const Lanes lanes = plan_on_avx2(test::kernel({test::ended(test::write(test::arg(0, 256 * 49), i * 49 + j, sum), {i, j})})).lanes;
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0].axis, 1);
}

}  // namespace
}  // namespace tinygrad::codegen
