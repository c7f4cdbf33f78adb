#include "target/target.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include <set>
#include <utility>

#include <tinygrad/errors.h>

#include "target/tensor_cores/registers.h"

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
  EXPECT_TRUE(cpu_target("x86-64-v2").tensor_cores.empty());
  EXPECT_EQ(cpu_target("x86-64-v3").tensor_cores.size(), 1u);
  EXPECT_EQ(cpu_target("x86-64-v4").tensor_cores.size(), 1u);
  EXPECT_EQ(cpu_target("icelake-server").tensor_cores.size(), 3u);
  const Target zen4 = cpu_target("znver4");
  ASSERT_EQ(zen4.tensor_cores.size(), 4u);
  EXPECT_EQ(cpu_target("alderlake").tensor_cores.size(), 3u);
  EXPECT_EQ(cpu_target("arrowlake").tensor_cores.size(), 5u);
  for (const char* arch : {"x86-64-v3", "x86-64-v4", "icelake-server", "znver4", "alderlake", "arrowlake", "neoverse-n1", "apple-m1"})
    for (const Target target = cpu_target(arch); const TensorCore& core : target.tensor_cores) {
      EXPECT_EQ(*find_tensor_core(core.name), core);
      EXPECT_EQ(core.items, target.lanes(core.out));
      EXPECT_EQ(core.a.elements(), core.k);
      EXPECT_EQ(core.b.elements(), core.k);
      EXPECT_EQ(core.c.elements(), 1);
      for (int lane = 0; lane < core.items; ++lane) EXPECT_EQ(core.c.column_of(lane, 0), lane);
    }
  EXPECT_EQ(zen4.tensor_cores[0].a_type, DType::bfloat16);
}

TEST(Target, ProcessorsOfArmMultiplyRowsAndConvertBfloats) {
  EXPECT_TRUE(cpu_target("cortex-a72").tensor_cores.empty());
  EXPECT_EQ(cpu_target("neoverse-n1").tensor_cores.size(), 2u);
  Target v1 = cpu_target("neoverse-v1");
  EXPECT_EQ(v1.tensor_cores.size(), 10u);
  EXPECT_TRUE(v1.converts(DType::bfloat16));
  EXPECT_FALSE(cpu_target("neoverse-n1").converts(DType::bfloat16));
  EXPECT_FALSE(cpu_target("sapphirerapids").converts(DType::bfloat16)) << "denormal numbers would be zero";
  for (const TensorCore& core : v1.tensor_cores) {
    EXPECT_EQ(core.items, v1.lanes(core.out));
    EXPECT_EQ(core.m * core.n, core.items) << "a sum for each lane";
    EXPECT_EQ(core.c.elements(), 1);
    EXPECT_EQ(distinct_elements(core, core.b).size() * itemsize(core.b_type), 16u) << "a vector";
  }
  set_renderer(v1, "CLANG");
  EXPECT_FALSE(v1.converts(DType::bfloat16));
}

TEST(Target, SomeCpusComputeWithHalves) {
  for (const char* arch : {"sapphirerapids", "graniterapids", "neoverse-n1", "neoverse-v2", "apple-m1"})
    EXPECT_TRUE(computes_halves(cpu_target(arch))) << arch;
  for (const char* arch : {"znver5", "icelake-server", "alderlake", "cortex-a72", "rv64gcv"})
    EXPECT_FALSE(computes_halves(cpu_target(arch))) << arch;
  EXPECT_FALSE(computes_halves(dsp_target("v66")));
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
  EXPECT_EQ(ampere.group_memory_bytes, 163 << 10);
  EXPECT_EQ(cuda_target("sm_86").group_memory_bytes, 99 << 10);
  EXPECT_EQ(hopper.group_memory_bytes, 227 << 10);
  EXPECT_EQ(blackwell.group_memory_bytes, 227 << 10);
  for (const Target& t : {ampere, hopper, blackwell}) EXPECT_EQ(t.declared_group_bytes, 48 << 10) << "more is given at launch";
  for (const char* wrong : {"sm_70", "sm_80a", "sm_90f", "sm_90ab", "sm_", "90", ""}) EXPECT_THROW(cuda_target(wrong), ValueError) << wrong;
}

TEST(Target, OpenClDevicesConvertHalvesThatTheyCannotCompute) {
  const Target plain = opencl_target({}), with_halves = opencl_target({.has_half = true});
  EXPECT_TRUE(plain.converts(DType::float16));
  EXPECT_FALSE(plain.supports(DType::float16));
  EXPECT_TRUE(with_halves.supports(DType::float16));
  EXPECT_FALSE(with_halves.converts(DType::float16));
  EXPECT_NE(plain.key(), with_halves.key());
}

TEST(Target, ItemsOfATensorCoreHoldEachElementOnce) {
  for (const Target& target : {cuda_target("sm_90a"), interp_target()}) {
    for (const TensorCore& core : target.tensor_cores) {
      const auto check = [&](const TensorCore::Layout& layout, int rows, int columns) {
        std::set<std::pair<int64_t, int64_t>> places;
        for (int item = 0; item < (layout.in_memory ? 1 : core.items); ++item)
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

/// Every element of a matrix is held by the same number of items, once by each, or is in memory once.
void expect_covers(const TensorCore::Layout& layout, int items, int rows, int columns) {
  if (layout.in_memory) items = 1;
  std::map<std::pair<int64_t, int64_t>, int> copies;
  for (int item = 0; item < items; ++item)
    for (int e = 0; e < layout.elements(); ++e) ++copies[{layout.row_of(item, e), layout.column_of(item, e)}];
  EXPECT_EQ(copies.size(), size_t(rows) * size_t(columns));
  for (const auto& [at, n] : copies) {
    EXPECT_LT(at.first, rows);
    EXPECT_LT(at.second, columns);
    EXPECT_EQ(n, items * layout.elements() / (rows * columns));
  }
}

TEST(Target, TensorCoresHoldWholeMatrices) {
  const Target interp = interp_target();
  for (const TensorCore& core : interp.tensor_cores) {
    SCOPED_TRACE(core.name.str());
    EXPECT_EQ(*find_tensor_core(core.name), core);
    if (core.m > 1) expect_covers(core.a, core.items, core.m, core.k);
    if (core.m > 1) expect_covers(core.b, core.items, core.k, core.n);
    expect_covers(core.c, core.items, core.m, core.n);
    EXPECT_EQ(core.c.elements() * core.items, core.m * core.n) << "no copies of results";
  }
}

/// Core matrices of eight rows of 16 bytes (PTX ISA, 9.7.15.5.1.2), and as cp.async has them in other banks.
TEST(Target, WarpgroupsReadCoreMatrices) {
  EXPECT_GT(cuda_target("sm_90a").tensor_cores.size(), cuda_target("sm_90").tensor_cores.size());
  for (const char* without : {"sm_80", "sm_89", "sm_90", "sm_100", "sm_103a", "sm_120a"})
    for (const TensorCore& core : cuda_target(without).tensor_cores) EXPECT_FALSE(core.a.in_memory || core.b.in_memory) << without;
  int with_sums = 0, without_sums = 0;
  std::vector<TensorCore> cores = cuda_target("sm_90a").tensor_cores;
  for (const TensorCore& core : cuda_target("sm_100a").tensor_cores) cores.push_back(core);
  for (const TensorCore& core : cores) {
    if (!core.b.in_memory) continue;
    ++(core.tensor_memory ? with_sums : without_sums);
    SCOPED_TRACE(core.name.str());
    EXPECT_EQ(core.items, 128);
    EXPECT_EQ(core.k * int(itemsize(core.a_type)), 32);
    for (const bool is_first : {true, false}) {
      const TensorCore::Layout& layout = is_first ? core.a : core.b;
      const auto each = int64_t(itemsize(core.a_type)), piece = 16 / each;
      std::map<std::pair<int64_t, int64_t>, int64_t> at;  // bytes, by place along k and across
      for (int e = 0; e < layout.elements(); ++e) {
        const int64_t row = layout.row_of(0, e), column = layout.column_of(0, e);
        at[is_first ? std::pair(column, row) : std::pair(row, column)] = layout.place_of(e) * each;
      }
      const bool along_k = (at[{1, 0}]) == each;
      EXPECT_TRUE(along_k || (each == 2 && at[{0, 1}] == each));
      if (!core.tensor_memory) {
        EXPECT_EQ(layout.swizzle, along_k ? 2 : 8);
        for (const auto& [where, place] : at) {
          const int64_t far = along_k ? where.second : where.first, off = (along_k ? where.first : where.second) * each;
          const int64_t row = along_k ? 32 : 128, steps = along_k ? far : far + off / row * 32 / each, plain = steps * row + off % row;
          EXPECT_EQ(place, plain ^ (plain / 128 % layout.swizzle * 16)) << where.first << " along k, " << where.second << " across";
        }
        continue;
      }
      const auto place = [&](int64_t far, int64_t off) { return along_k ? at[{far, off}] : at[{off, far}]; };
      for (int64_t i = 0; i < piece; ++i)
        for (int64_t row = 0; row < 8; ++row) EXPECT_EQ(place(i, row), i * each + row * 16);
      EXPECT_EQ(place(piece, 0) / 16 % 2, 1) << "an odd number of rows of 16 bytes";
    }
  }
  EXPECT_EQ(without_sums, 63) << "three widths of wgmma";
  EXPECT_EQ(with_sums, 34) << "two of tcgen05, which has no sums of 16 bits here";
}

/// Where AMD's matrix instruction calculator says that registers are: `--register-layout` of some elements of each matrix.
TEST(Target, AmdLayoutsAreTheVendors) {
  struct Place {
    const char* core;
    char matrix;
    int row, column, lane, element;
  };
  constexpr Place kPlaces[] = {
      {"mfma_f32_32x32x8_f16", 'A', 17, 6, 49, 2},         {"mfma_f32_32x32x8_f16", 'D', 21, 9, 41, 9},
      {"mfma_f32_16x16x16_bf16", 'A', 5, 11, 37, 3},       {"mfma_f32_16x16x16_bf16", 'D', 14, 3, 51, 2},
      {"mfma_f32_16x16x4_f32", 'B', 2, 7, 39, 0},          {"mfma_f32_32x32x2_f32", 'A', 30, 1, 62, 0},
      {"mfma_f64_16x16x4_f64", 'D', 11, 4, 52, 2},         {"mfma_i32_16x16x16_i8", 'B', 13, 1, 49, 1},
      {"mfma_i32_32x32x16_i8", 'A', 3, 14, 35, 6},         {"mfma_f32_16x16x32_fp8", 'B', 27, 2, 50, 3},
      {"wmma_f32_16x16x16_f16", 'A', 9, 13, 9, 13},        {"wmma_f32_16x16x16_f16", 'A', 9, 13, 25, 13},
      {"wmma_f32_16x16x16_f16", 'D', 7, 12, 28, 3},        {"wmma_gfx12_f32_16x16x16_f16", 'A', 2, 13, 18, 5},
      {"wmma_gfx12_f32_16x16x16_bf16", 'B', 10, 6, 6, 6},  {"wmma_gfx12_i32_16x16x16_i8", 'A', 8, 13, 24, 5},
      {"wmma_gfx12_f32_16x16x16_fp8", 'D', 13, 15, 31, 5},
  };
  for (const Place& p : kPlaces) {
    SCOPED_TRACE(p.core);
    const TensorCore& core = *find_tensor_core(p.core);
    const TensorCore::Layout& layout = p.matrix == 'A' ? core.a : p.matrix == 'B' ? core.b : core.c;
    EXPECT_EQ(layout.row_of(p.lane, p.element), p.row);
    EXPECT_EQ(layout.column_of(p.lane, p.element), p.column);
  }
}

TEST(Target, GpusHaveTheCoresOfTheirKind) {
  EXPECT_EQ(amd_target("gfx90a").name(), "HIP:HIP:gfx90a");
  EXPECT_EQ(amd_target("gfx942").tensor_cores.front().items, 64);
  EXPECT_EQ(amd_target("gfx1100").tensor_cores.front().items, 32);
  EXPECT_NE(amd_target("gfx1100").tensor_cores, amd_target("gfx1201").tensor_cores);
  EXPECT_THROW(amd_target("gfx1"), ValueError);
  EXPECT_FALSE(metal_target().supports(DType::float64));
  for (const TensorCore& core : metal_target().tensor_cores) EXPECT_EQ(core.a, core.c);
}

TEST(Target, HostIsOneOfTheKnown) {
  const Target host = host_cpu_target();
  EXPECT_NO_THROW(cpu_target(host.arch.str()));
  EXPECT_GT(host.l1_bytes, 0);
}

}  // namespace
}  // namespace tinygrad
