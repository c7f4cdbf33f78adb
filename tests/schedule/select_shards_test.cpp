// What becomes of collectives: copies, and sums whose kernels take no more arguments than their device allows.
#include "schedule/select_shards.h"

#include <gtest/gtest.h>

#include "schedule/kernel_calls.h"
#include "spec/verify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::schedule {
namespace {

size_t count(const UOp& body, Op op) {
  size_t n = 0;
  for (const UOp& u : toposort(body)) n += u.is(op);
  return n;
}

TEST(SelectShards, SumsOfManyShardsAreSeveralKernels) {
  const std::vector<Symbol> names(10, Symbol("CPU"));
  const Devices shards = Devices::of(names);
  const UOp from = param(DType::float32, 6, {.slot = 0, .device = shards}),
            to = param(DType::float32, 6, {.slot = 10, .device = shards.parted([](size_t) { return uint64_t(0); })});
  const UOp all(Op::COLLECTIVE, DType::float32, {from},
                CollectiveArg{.kind = Collective::allreduce, .devices = shards, .along = {{10, 1}}});
  const UOp call = copy_between(all, to, from);
  for (const int most : {3, 4, 11, 32}) {
    Target target = cpu_target("x86-64-v3");
    target.max_buffers = most;
    const UOp linear = select_shards(linear_of(std::span(&call, 1)), [&](Symbol) -> const Target& { return target; }, 11);
    size_t loads = 0;
    for (const UOp& c : linear.src()) {
      spec::verify_kernel(c.src(0));
      EXPECT_LE(count(c.src(0), Op::PARAM), size_t(most));
      loads += count(c.src(0), Op::LOAD);
    }
    EXPECT_EQ(loads, 10 + linear.src_count() - 1) << "each shard once, and what is there already";
    EXPECT_EQ(linear.src_count(), most == 3 ? 9u : most == 4 ? 5u : 1u);
  }
}

}  // namespace
}  // namespace tinygrad::schedule
