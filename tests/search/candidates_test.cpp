#include "search/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <tinygrad/errors.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "search/program_cost.h"

namespace tinygrad::search {
namespace {

using codegen::test::matmul;
using codegen::test::softmax;

UOp with_opts(const UOp& kernel, std::vector<Opt> opts) {
  auto arg = kernel.arg_as<KernelArg>();
  arg.optimized = opts.empty();
  arg.opts = std::move(opts);
  return kernel.with_arg(arg);
}

std::set<std::string> texts(const std::vector<std::vector<Opt>>& lists) {
  std::set<std::string> out;
  for (const auto& l : lists) out.insert(codegen::to_string(l));
  return out;
}

std::set<std::string> neighbours_of(const UOp& kernel, std::string_view opts, const Target& target) {
  return texts(neighbours(codegen::simplified_kernel(kernel), codegen::parse_opts(opts), target));
}

TEST(Candidates, AStepFromNoOpts) {
  const std::set<std::string> found = neighbours_of(matmul(64, 64, 64), "", cpu_target("x86-64-v3"));
  for (const char* wanted : {"UPCAST(0,4)", "UPCAST(1,2)", "UNROLL(2,8)", "LANE(1,8)", "LANE(2,8)", "THREAD(0,16)", "SWAP(0,1)",
                             "STAGE(0,2,thread,1)", "BLOCK(1,16) SWAP(0,1)"})
    EXPECT_TRUE(found.contains(wanted)) << wanted;
}

TEST(Candidates, NumbersChangeAndOptsGo) {
  const std::set<std::string> found = neighbours_of(matmul(64, 64, 64), "LANE(1,8) UPCAST(0,4) THREAD(0,16)", cpu_target("x86-64-v3"));
  for (const char* wanted :
       {"LANE(1,4) UPCAST(0,4) THREAD(0,16)", "LANE(1,8) UPCAST(0,5) THREAD(0,16)", "LANE(1,8) UPCAST(0,8) THREAD(0,16)",
        "LANE(1,8) UPCAST(0,4) THREAD(0,8)", "UPCAST(0,4) THREAD(0,16)", "LANE(1,8) UPCAST(0,4)"})
    EXPECT_TRUE(found.contains(wanted)) << wanted;
}

TEST(Candidates, CopiesOfABlockChangeWithIt) {
  const std::set<std::string> found = neighbours_of(matmul(64, 64, 64), "BLOCK(0,6) UPCAST(1,6)", cpu_target("x86-64-v3"));
  EXPECT_TRUE(found.contains("BLOCK(0,5) UPCAST(1,5)"));
  EXPECT_TRUE(found.contains(""));
}

TEST(Candidates, BlocksOutsideLeaveTilesWhereTheyWere) {
  const std::set<std::string> found = neighbours_of(matmul(64, 64, 64), "SWAP(0,1) STAGE(0,2,thread,1)", cpu_target("x86-64-v3"));
  EXPECT_TRUE(found.contains("SWAP(0,1) BLOCK(1,16) SWAP(0,1) STAGE(1,2,thread,1)"));
}

TEST(Candidates, ReductionsGoAroundLoops) {
  const std::set<std::string> found = neighbours_of(matmul(64, 64, 512), "STAGE(0,2,thread,1)", cpu_target("x86-64-v3"));
  EXPECT_TRUE(found.contains("OUTER(2,0) STAGE(2,2,thread,1)"));
  EXPECT_TRUE(found.contains("BLOCK(2,256) OUTER(2,1) STAGE(2,2,thread,1)"));
}

TEST(Candidates, GroupsGetWorkItems) {
  Target target = interp_target();
  const std::set<std::string> found = neighbours_of(matmul(64, 64, 64), "", target);
  EXPECT_TRUE(found.contains("LOCAL(0,16)"));
  EXPECT_TRUE(found.contains("GROUP(2,16)"));
  EXPECT_TRUE(found.contains("STAGE(0,1,group,1)"));
  EXPECT_FALSE(found.contains("THREAD(0,16)"));
}

// Each list either is refused by a ValueError, or lowers.
TEST(Candidates, EachFitsOrIsRefused) {
  for (const Target& target : {cpu_target("x86-64-v3"), interp_target()})
    for (const UOp& kernel : {matmul(48, 32, 24), softmax(16, 24)}) {
      std::vector<Opt> opts;
      for (int step = 0; step < 3; ++step) {
        const auto lists = neighbours(codegen::simplified_kernel(kernel), opts, target);
        ASSERT_FALSE(lists.empty());
        size_t lowered = 0;
        for (const auto& list : lists) try {
            EXPECT_GT(program_cost(codegen::full_rewrite(with_opts(kernel, list), target), target).run, 0);
            ++lowered;
            opts = list;
          } catch (const ValueError&) {}
        EXPECT_GT(lowered, 5u);
      }
    }
}

TEST(ProgramCost, VectorsTilesAndReuseCostLess) {
  const Target target = cpu_target("x86-64-v3");
  const auto cost = [&](const char* opts) {
    return program_cost(codegen::full_rewrite(with_opts(matmul(256, 256, 256), codegen::parse_opts(opts)), target), target).run;
  };
  EXPECT_GT(cost(""), 4 * cost("LANE(1,8)"));
  EXPECT_GT(cost("LANE(1,8)"), 1.5 * cost("LANE(1,8) UPCAST(0,4)"));
  EXPECT_GT(cost("LANE(1,8) UPCAST(0,16) UPCAST(1,4)"), cost("LANE(1,8) UPCAST(0,4)"));  // no registers for that
}

}  // namespace
}  // namespace tinygrad::search
