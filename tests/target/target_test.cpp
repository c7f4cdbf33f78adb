#include "target/target.h"

#include <gtest/gtest.h>

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

TEST(Target, OtherProcessorsThanTheHosts) {
  const Target arm = cpu_target("neoverse-n1"), risc_v = cpu_target("rv64gcv_zvl256b"), dsp = dsp_target("v66");
  EXPECT_EQ(arm.lanes(DType::float32), 4);
  EXPECT_EQ(risc_v.lanes(DType::float32), 8);
  EXPECT_TRUE(arm.supports(DType::float16));
  EXPECT_FALSE(risc_v.supports(DType::float16));
  EXPECT_EQ(dsp.name(), "DSP:CLANG:v66");
  EXPECT_EQ(dsp.lanes(DType::uint8), 128);
  EXPECT_EQ(dsp.lanes(DType::float32), 1);
  EXPECT_EQ(dsp_target("v68").lanes(DType::float32), 32);
  EXPECT_THROW(dsp_target("v1"), ValueError);
  Target floats = dsp;
  floats.vector_floats = true;
  EXPECT_NE(floats.key(), dsp.key());
}

TEST(Target, CompilersKnowProcessorsByOtherNames) {
  EXPECT_EQ(processor_names("znver4").cpu, "znver4");
  EXPECT_STREQ(processor_names("znver4").triple, "x86_64-unknown-linux-gnu");
  EXPECT_EQ(processor_names("armv8-a").cpu, "generic");
  EXPECT_NE(processor_names("rv64gcv_zvl256b").features.find("+zvl256b"), std::string::npos);
  EXPECT_EQ(processor_names("v66").cpu, "hexagonv66");
  EXPECT_THROW(processor_names("z80"), ValueError);
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

TEST(Target, HostIsOneOfTheKnown) {
  const Target host = host_cpu_target();
  EXPECT_NO_THROW(cpu_target(host.arch.str()));
  EXPECT_GT(host.l1_bytes, 0);
}

}  // namespace
}  // namespace tinygrad
