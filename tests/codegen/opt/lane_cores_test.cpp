// Tensor cores of CPUs, whose items are lanes: dot products and products of two rows and columns, with factors of every sign.
#include <gtest/gtest.h>

#include <random>

#include <fmt/core.h>

#include "codegen/choose/heuristic_opts.h"
#include "codegen/kernels.h"
#include "compiler/clang/clang.h"
#include "compiler/llvm/llvm.h"
#include "kernel/describe_kernel.h"
#include "program/run_kernel.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/llvmir/llvmir.h"
#include "support/test_scale.h"
#include "target/target.h"
#include "target/tensor_cores/registers.h"
#include "uop/graph.h"

namespace tinygrad::codegen {
namespace {

/// A product, and the core that a processor makes it with.
struct Product {
  const char* arch;
  DType a, b, out;
  const char* core;

  std::string name() const { return fmt::format("{} {} {}", arch, repr(a), repr(b)); }
};

constexpr DType s8 = DType::int8, u8 = DType::uint8, s16 = DType::int16, s32 = DType::int32;
constexpr Product products[] = {
    {"alderlake", u8, s8, s32, "vpdpbusd_u8_s8_256"},
    {"alderlake", s8, u8, s32, "vpdpbusd_s8_u8_256"},
    {"alderlake", s8, s8, s32, "vpdpbusd_u8_s8_256"},
    {"alderlake", u8, u8, s32, "vpdpbusd_s8_u8_256"},
    {"alderlake", s16, s16, s32, "vpdpwssd_256"},
    {"arrowlake", s8, s8, s32, "vpdpbssd_256"},
    {"sierraforest", u8, u8, s32, "vpdpbuud_256"},
    {"sierraforest", u8, s8, s32, "vpdpbusd_u8_s8_256"},
    {"znver4", s8, s8, s32, "vpdpbusd_u8_s8"},
    {"znver5", u8, u8, s32, "vpdpbusd_s8_u8"},
    {"neoverse-n1", s8, s8, s32, "sdot"},
    {"neoverse-n1", u8, u8, s32, "udot"},
    {"neoverse-n1", u8, s8, s32, "sdot"},
    {"apple-m1", s8, u8, s32, "udot"},
    {"neoverse-v1", s8, s8, s32, "smmla"},
    {"neoverse-v1", u8, u8, s32, "ummla"},
    {"neoverse-n2", u8, s8, s32, "usmmla_u8_s8"},
    {"neoverse-n2", s8, u8, s32, "usmmla_s8_u8"},
    {"neoverse-v2", DType::bfloat16, DType::bfloat16, DType::float32, "bfmmla"},
};

std::string cores_used(const UOp& linear) {
  std::string out;
  for (const UOp& u : linear.src())
    if (u.is(Op::WMMA) && out.find(u.arg_as<WmmaArg>().name.str()) == std::string::npos) out += u.arg_as<WmmaArg>().name.str();
  return out;
}

UOp compiled(const UOp& kernel, const std::vector<Opt>& opts, const Target& target) {
  return full_rewrite(test::with_opts(kernel, opts), target, {.noopt = true, .spec = 1});
}

TEST(LaneCores, GiveTheSameWithOpts) {
  const char* opts[] = {"TC(0,-1)",
                        "TC(0,-1) UPCAST(0,4) UPCAST(1,2)",
                        "TC(0,-1) UPCAST(0,3) UPCAST(1,2) SWAP(0,1) STAGE(0,2,thread,1)",
                        "TC(0,-1) UPCAST(1,2) UNROLL(2,2) STAGE(0,1,thread,1)",
                        "TC(0,-1) UPCAST(0,2) STAGE(2,1,thread,1) STAGE(2,2,thread,1)",
                        "BLOCK(2,16) TC(0,-1) UPCAST(0,4) UPCAST(1,2) OUTER(2,0) STAGE(2,2,thread,1)"};
  size_t i = 0;
  for (const Product& p : tinygrad::test::sampled(std::vector<Product>(std::begin(products), std::end(products))))
    for (const char* o : opts) {
      const bool divides = i++ % 2 == 0 || std::string_view(o).starts_with("BLOCK");
      const auto& [m, n, k] = divides ? std::tuple(8, 32, 32) : std::tuple(9, 37, 35);
      SCOPED_TRACE(fmt::format("{}x{}x{} {}: {}", m, n, k, p.name(), o));
      const UOp kernel = test::narrow_matmul(m, n, k, p.a, p.b, p.out);
      EXPECT_EQ(cores_used(compiled(kernel, parse_opts(o), cpu_target(p.arch))), p.core);
      EXPECT_EQ(test::difference_on_interp(kernel, parse_opts(o), cpu_target(p.arch)), "");
    }
}

TEST(LaneCores, AreChosenAndGiveTheSameForAnySize) {
  std::mt19937_64 random(tinygrad::test::seed());
  const auto size = [&](int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); };
  for (const Product& p : products) {
    const int64_t m = size(8, 40), n = size(16, 70), k = size(16, 80);
    SCOPED_TRACE(fmt::format("{}x{}x{} {}", m, n, k, p.name()));
    const UOp kernel = test::narrow_matmul(m, n, k, p.a, p.b, p.out);
    EXPECT_EQ(test::difference_on_interp(kernel, heuristic_opts(kernel, cpu_target(p.arch)), cpu_target(p.arch)), "");
  }
}

TEST(LaneCores, CompileInBothLanguages) {
  for (const Product& p : products) {
    SCOPED_TRACE(p.name());
    const UOp linear = compiled(test::narrow_matmul(6, 36, 32, p.a, p.b, p.out), parse_opts("TC(0,-1) UPCAST(0,3)"), cpu_target(p.arch));
    const KernelInfo info = describe_kernel(linear, "k");
    EXPECT_FALSE(compiler::compile_llvmir(renderer::render_llvmir(cpu_target(p.arch), linear, info), p.arch).empty());
    if (!compiler::clang_missing().empty()) continue;
    EXPECT_FALSE(compiler::compile_c(renderer::render_c(cpu_target(p.arch), linear, info), cpu_target(p.arch)).empty());
  }
}

TEST(LaneCores, ReadEachElementOfRowsAndColumnsOnce) {
  using Places = std::vector<int64_t>;
  const TensorCore &smmla = *find_tensor_core("smmla"), &swapped = *find_tensor_core("usmmla_s8_u8"), &sdot = *find_tensor_core("sdot");
  const auto run = [](int64_t first) {
    Places out;
    for (int64_t i = 0; i < 8; ++i) out.push_back(first + i);
    return out;
  };
  const auto both = [&](int64_t second) {
    Places out = run(0);
    for (const int64_t i : run(second)) out.push_back(i);
    return out;
  };
  EXPECT_EQ(distinct_elements(smmla, smmla.a), both(16)) << "rows of items 0 and 2";
  EXPECT_EQ(distinct_elements(smmla, smmla.b), both(8)) << "columns of items 0 and 1";
  EXPECT_EQ(distinct_elements(swapped, swapped.a), both(8));
  EXPECT_EQ(distinct_elements(swapped, swapped.b), both(16));
  EXPECT_EQ(distinct_elements(sdot, sdot.a), (Places{0, 1, 2, 3})) << "all lanes share a row";
  EXPECT_EQ(distinct_elements(sdot, sdot.b).size(), 16u);
}

}  // namespace
}  // namespace tinygrad::codegen
