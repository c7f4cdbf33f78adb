#include <gtest/gtest.h>

#include <map>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "uop/build.h"

namespace tinygrad::codegen {
namespace {

using namespace test;

/// out[i] = a[i] + 1 over five loops
UOp five_loops() {
  const int64_t sizes[] = {2, 3, 4, 5, 6};
  std::vector<UOp> loops;
  UOp at = index_const(0);
  for (int i = 0; i < 5; ++i) {
    loops.push_back(loop(sizes[i], i));
    at = at * sizes[i] + loops.back();
  }
  // Read in another order, so that they are not one loop.
  UOp turned = index_const(0);
  for (size_t i = 5; i-- > 0;) turned = turned * sizes[i] + loops[i];
  return kernel({ended(write(arg(0, 720), at, read(arg(1, 720), turned) + 1), loops)});
}

struct Launch {
  std::map<int, int64_t> dims;
  std::vector<int64_t> loops;
};

Launch launch_of(const Target& target) {
  Launch launch;
  const UOp linear = full_rewrite(five_loops(), target, {.noopt = true, .spec = 3});
  for (const UOp& u : linear.src()) {
    if (u.is(Op::SPECIAL)) launch.dims[u.arg_as<SpecialArg>().dim] = const_value(u.src(0))->as_int();
    if (u.is(Op::RANGE)) launch.loops.push_back(const_value(u.src(0))->as_int());
  }
  return launch;
}

TEST(LaunchDims, TheThirdIsMadeOfAllLoopsThatAreLeft) {
  const Launch launch = launch_of(interp_target());
  EXPECT_EQ(launch.dims, (std::map<int, int64_t>{{0, 6}, {1, 5}, {2, 24}}));
  EXPECT_TRUE(launch.loops.empty());
}

TEST(LaunchDims, WhatIsOverALimitStaysALoop) {
  Target target = interp_target();
  target.max_global[2] = 10;
  const Launch launch = launch_of(target);
  EXPECT_EQ(launch.dims, (std::map<int, int64_t>{{0, 6}, {1, 5}, {2, 8}}));
  EXPECT_EQ(launch.loops, std::vector<int64_t>{3});
}

}  // namespace
}  // namespace tinygrad::codegen
