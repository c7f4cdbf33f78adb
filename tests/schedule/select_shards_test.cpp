// What becomes of collectives: copies, and sums whose kernels take no more arguments than their device allows.
#include "schedule/select_shards.h"

#include <algorithm>
#include <string>
#include <utility>

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
            to = param(DType::float32, 6, {.slot = 10, .device = shards.with_values([](size_t) { return uint64_t(0); })});
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
    EXPECT_EQ(linear.src_count(), most == 3 ? 5u : most == 4 ? 4u : 1u);
  }
}

/// Kernels and copies of an all-reduce along the first direction of a mesh of 3 x 2 devices.
std::pair<size_t, size_t> kernels_and_copies(bool shares_memory, int most) {
  std::vector<Symbol> names;
  for (int i = 0; i < 6; ++i) names.push_back(Symbol("CPU:" + std::to_string(i)));
  const Devices shards = Devices::of(names);
  const UOp from = param(DType::float32, 6, {.slot = 0, .device = shards}), to = param(DType::float32, 6, {.slot = 6, .device = shards});
  const UOp all(Op::COLLECTIVE, DType::float32, {from}, CollectiveArg{.kind = Collective::allreduce, .devices = shards, .along = {{3, 2}}});
  const UOp call = copy_between(all, to, from);
  Target target = cpu_target("x86-64-v3");
  target.shares_memory = shares_memory;
  target.max_buffers = most;
  const UOp linear = select_shards(linear_of(std::span(&call, 1)), [&](Symbol) -> const Target& { return target; }, 12);
  std::pair<size_t, size_t> out;
  std::vector<int32_t> written;
  for (const UOp& c : linear.src()) {
    (is_kernel(c) ? out.first : out.second) += 1;
    if (!is_kernel(c)) continue;
    spec::verify_kernel(c.src(0));
    EXPECT_LE(count(c.src(0), Op::PARAM), size_t(most));
    for (size_t k = 0; k < count(c.src(0), Op::STORE); ++k) written.push_back(c.src(1 + k).arg_as<ParamArg>().slot);
  }
  std::ranges::sort(written);
  written.erase(std::ranges::unique(written).begin(), written.end());
  EXPECT_EQ(written, (std::vector<int32_t>{6, 7, 8, 9, 10, 11}));
  return out;
}

TEST(SelectShards, SumsOfDevicesThatShareMemoryAreOneKernelALine) {
  using Counts = std::pair<size_t, size_t>;
  EXPECT_EQ(kernels_and_copies(false, 16), Counts(6, 12));
  EXPECT_EQ(kernels_and_copies(true, 16), Counts(2, 0));
  EXPECT_EQ(kernels_and_copies(true, 6), Counts(2, 0));
  EXPECT_EQ(kernels_and_copies(true, 5), Counts(4, 0)) << "two targets, then one";
  EXPECT_EQ(kernels_and_copies(true, 4), Counts(6, 0));
  EXPECT_EQ(kernels_and_copies(true, 3), Counts(12, 0));
}

}  // namespace
}  // namespace tinygrad::schedule
