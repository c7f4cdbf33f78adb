// What a plan costs follows from the plan alone, and a plan that is looked for is as good as the ones that a search begins with.
#include "codegen/choose/choose_plan.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tinygrad::codegen
