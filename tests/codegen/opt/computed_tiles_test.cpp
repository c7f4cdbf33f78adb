// Tiles of what is computed of an argument: STAGE(..., computed).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tinygrad/errors.h>

#include "program/run_kernel.h"
#include "support/test_scale.h"

namespace tinygrad::codegen {
namespace {

TEST(ComputedTiles, GiveTheSame) {
  struct Case {
    bool transposed, masked;
    const char* opts;
  };
  std::vector<Case> cases;
  for (const bool transposed : {false, true})
    for (const bool masked : {false, true}) {
      for (const char* opts : {
               "STAGE(0,1,thread,1,computed)",
               "UPCAST(0,4) STAGE(2,1,thread,1,computed)",
               "LANE(1,8) UPCAST(0,4) STAGE(0,1,thread,1,computed)",
               "LANE(1,8) UPCAST(0,6) STAGE(0,3,thread,1,computed)",
               "LANE(1,8) BLOCK(0,6) UPCAST(1,6) STAGE(0,1,thread,1,computed)",
               "LANE(1,8) UPCAST(0,6) UPCAST(1,3) SWAP(0,1) THREAD(1,2) STAGE(0,5,thread,1) STAGE(1,1,thread,1,computed)",
               "LANE(1,8) UPCAST(0,4) UPCAST(1,3) THREAD(0,5) STAGE(0,5,thread,1) STAGE(0,1,thread,1,computed)",
               "LANE(0,4) UPCAST(1,6) STAGE(0,1,thread,1,computed)",
               "LANE(2,4) UPCAST(0,2) STAGE(0,1,thread,1,computed)",
               "BLOCK(2,22) OUTER(2,0) LANE(1,8) UPCAST(0,4) STAGE(2,1,thread,1,computed)",
               "UNROLL(2,4) LANE(1,4) UPCAST(0,2) STAGE(0,3,thread,1,computed) STAGE(0,2,thread,1,computed)",
           })
        cases.push_back({transposed, masked, opts});
      const std::vector<Opt> of_items = parse_opts("LOCAL(0,4) LOCAL(1,8) UPCAST(0,2) STAGE(0,1,thread,1,computed)");
      EXPECT_EQ(test::difference_on_interp(test::weighted_sums(20, 24, 44, transposed, masked), of_items, interp_target()), "");
    }
  for (const auto& [transposed, masked, opts] : tinygrad::test::sampled(cases)) {
    SCOPED_TRACE(fmt::format("{}{} {}", transposed ? "transposed" : "rows", masked ? ", masked:" : ":", opts));
    EXPECT_EQ(test::difference_on_cpu(test::weighted_sums(20, 24, 44, transposed, masked), parse_opts(opts)), "");
  }
}

// A tile would hold what was there before the kernel stored to it.
TEST(ComputedTiles, OfWhatTheKernelStoresToAreRejected) {
  const UOp i = test::loop(8, 0), k = test::reduce_loop(16, 1), out = test::arg(0, 8);
  const UOp sum = test::reduce_over(Op::ADD, test::read(test::arg(1, 8 * 16), i * 16 + k) * test::read(out, i), {k});
  const UOp kernel = test::kernel({test::ended(test::write(out, i, sum), {i})});
  const char* computed = "UPCAST(0,2) STAGE(0,1,thread,1,computed)";
  EXPECT_NE(test::difference_on_cpu(kernel, parse_opts(computed)).find("stores to what the value is computed of"), std::string::npos);
  EXPECT_EQ(test::difference_on_cpu(kernel, parse_opts("UPCAST(0,2) STAGE(0,1,thread,1)")), "");
}

TEST(ComputedTiles, AreChosenWhereManyColumnsUseAValue) {
  const Target target = cpu_target("x86-64-v3");
  for (const bool transposed : {false, true})
    for (const bool masked : {false, true}) {
      const UOp kernel = test::weighted_sums(96, 64, 80, transposed, masked);
      const std::vector<Opt> opts = heuristic_opts(kernel, target);
      SCOPED_TRACE(to_string(opts));
      EXPECT_NE(to_string(opts).find("computed"), std::string::npos);
      EXPECT_EQ(test::difference_on_cpu(kernel, opts), "");
    }
  // There is nothing to save where each value is used once, nor is a gate something to compute.
  for (const UOp& kernel : {test::weighted_sums(4096, 1, 80, false, false), test::convolution_adjoint(24, 3, 16)})
    EXPECT_EQ(to_string(heuristic_opts(kernel, target)).find("computed"), std::string::npos);
}

}  // namespace
}  // namespace tinygrad::codegen
