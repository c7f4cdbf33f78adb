#include "target/target.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include <tinygrad/errors.h>

namespace tinygrad {
namespace {

TEST(Target, FixedCpusDiffer) {
  const Target avx2 = cpu_target("x86-64-v3"), avx512 = cpu_target("x86-64-v4");
  EXPECT_EQ(avx2.name(), "CPU:LLVM:x86-64-v3");
  EXPECT_EQ(avx2.lanes(DType::float32), 8);
  EXPECT_EQ(avx512.lanes(DType::float32), 16);
  EXPECT_EQ(avx512.lanes(DType::int8), 64);
  EXPECT_NE(avx2.key(), avx512.key());
  EXPECT_EQ(avx2.key(), cpu_target("x86-64-v3").key());
  EXPECT_THROW(cpu_target("pentium"), ValueError);
}

TEST(Target, SaysWhatIsNative) {
  const Target cpu = cpu_target("x86-64-v3"), interp = interp_target();
  EXPECT_TRUE(cpu.supports(Op::MULACC));
  EXPECT_FALSE(cpu.supports(Op::EXP2));
  EXPECT_TRUE(cpu.supports(DType::float16));
  EXPECT_FALSE(cpu.supports(DType::bfloat16));
  EXPECT_TRUE(interp.supports(Op::EXP2));
  EXPECT_TRUE(interp.supports(DType::fp8e4m3));
  EXPECT_TRUE(interp.has_groups);
}

TEST(Target, KeyHasEveryFact) {
  const Target base = cpu_target("x86-64-v3");
  Target t = base;
  t.l2_bytes += 1;
  EXPECT_NE(t.key(), base.key());
  t = base;
  t.set_dtypes({DType::float32});
  EXPECT_NE(t.key(), base.key());
  t = base;
  t.set_ops({});
  EXPECT_NE(t.key(), base.key());
}

TEST(Target, SomeCpusMultiplyNarrowNumbers) {
  EXPECT_TRUE(cpu_target("x86-64-v4").tensor_cores.empty());
  EXPECT_EQ(cpu_target("icelake-server").tensor_cores.size(), 2u);
  const Target zen4 = cpu_target("znver4");
  ASSERT_EQ(zen4.tensor_cores.size(), 3u);
  for (const TensorCore& core : zen4.tensor_cores) {
    EXPECT_EQ(*find_tensor_core(core.name), core);
    EXPECT_EQ(core.a.elements(), core.k);
    EXPECT_EQ(core.b.elements(), core.k);
    EXPECT_EQ(core.c.elements(), 1);
    for (int lane = 0; lane < core.items; ++lane) EXPECT_EQ(core.c.column_of(lane, 0), lane);
  }
  EXPECT_EQ(zen4.tensor_cores[0].a_type, DType::bfloat16);
}

TEST(Target, GpusOfNvidia) {
  const Target ampere = cuda_target("sm_80"), hopper = cuda_target("sm_90a"), blackwell = cuda_target("sm_100a");
  EXPECT_EQ(hopper.name(), "CUDA:CUDA:sm_90a");
  EXPECT_TRUE(ampere.has_groups);
  EXPECT_TRUE(ampere.converts(DType::bfloat16));
  EXPECT_FALSE(ampere.supports(DType::bfloat16));
  EXPECT_FALSE(ampere.converts(DType::fp8e4m3));
  EXPECT_TRUE(hopper.converts(DType::fp8e4m3));
  EXPECT_LT(ampere.tensor_cores.size(), hopper.tensor_cores.size());
  EXPECT_NE(hopper.key(), blackwell.key());
  for (const char* wrong : {"sm_70", "sm_80a", "sm_90f", "sm_90ab", "sm_", "90", ""}) EXPECT_THROW(cuda_target(wrong), ValueError) << wrong;
}

TEST(Target, ItemsOfATensorCoreHoldEachElementOnce) {
  for (const Target& target : {cuda_target("sm_90a"), interp_target()}) {
    for (const TensorCore& core : target.tensor_cores) {
      const auto check = [&](const TensorCore::Layout& layout, int rows, int columns) {
        std::set<std::pair<int64_t, int64_t>> places;
        for (int item = 0; item < core.items; ++item)
          for (int e = 0; e < layout.elements(); ++e) places.emplace(layout.row_of(item, e), layout.column_of(item, e));
        EXPECT_EQ(int(places.size()), rows * columns) << core.name.str();
        for (const auto& [row, column] : places) EXPECT_TRUE(row < rows && column < columns) << core.name.str();
      };
      check(core.a, core.m, core.k);
      check(core.b, core.k, core.n);
      check(core.c, core.m, core.n);
      EXPECT_EQ(*find_tensor_core(core.name), core);
    }
  }
}

TEST(Target, HostIsOneOfTheKnown) {
  const Target host = host_cpu_target();
  EXPECT_NO_THROW(cpu_target(host.arch.str()));
  EXPECT_GT(host.l1_bytes, 0);
}

}  // namespace
}  // namespace tinygrad
