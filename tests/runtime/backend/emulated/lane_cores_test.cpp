// Products of narrow numbers, and arithmetic on halves, by the instructions of ARM's processors, under an emulator: dot products, i8mm,
// bf16.
#include <gtest/gtest.h>

#include <random>

#include <fmt/core.h>
#include <tinygrad/context.h>

#include "codegen/choose/heuristic_opts.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "program/run_kernel.h"
#include "runtime/every_device.h"
#include "support/test_scale.h"
#include "target/target.h"

namespace tinygrad {
namespace {

constexpr DType s8 = DType::int8, u8 = DType::uint8, s32 = DType::int32, half = DType::float16, bf16 = DType::bfloat16;

/// By the option DEV.
class ArmProducts : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  Device& device() { return Device::get("CPU"); }
  void expect_right(const UOp& kernel, const std::vector<Opt>& opts, double bound = 1e-5) {
    const auto run = [&](const UOp& linear, const spec::EvalInputs& inputs) { return test::run_on_device(device(), linear, inputs); };
    EXPECT_EQ(codegen::test::difference_on(kernel, opts, device().target(), run, bound), "") << codegen::to_string(opts);
  }
  int64_t size(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random_); }

  Context choice_{{.ccache = false, .dev = GetParam()}};
  std::mt19937_64 random_{test::seed()};
};
INSTANTIATE_TEST_SUITE_P(All, ArmProducts,
                         testing::Values("CPU:LLVM:neoverse-n1", "CPU:LLVM:neoverse-v1", "CPU:CLANG:neoverse-n1", "CPU:CLANG:neoverse-v2"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase_if(name, [](char c) { return c == ':' || c == '-'; });
                           return name;
                         });

struct Factors {
  DType a, b, out;
};
constexpr Factors factors[] = {{s8, s8, s32}, {u8, u8, s32}, {u8, s8, s32}, {s8, u8, s32}, {bf16, bf16, DType::float32}};

TEST_P(ArmProducts, OfRandomSizesAsTheHeuristicsHaveThem) {
  for (const auto& [a, b, out] : factors)
    for (int i = 0; i < 2; ++i) {
      const int64_t m = size(1, 40), n = size(1, 70), k = size(1, 90);
      SCOPED_TRACE(fmt::format("{}x{}x{} {} {}", m, n, k, repr(a), repr(b)));
      const UOp kernel = codegen::test::narrow_matmul(m, n, k, a, b, out);
      expect_right(kernel, codegen::heuristic_opts(kernel, device().target()));
    }
}

TEST_P(ArmProducts, OfEachCore) {
  const char* opts[] = {"UPCAST(0,3) UPCAST(1,2)", "UPCAST(1,4) STAGE(0,2,thread,1)", "STAGE(2,1,thread,1)"};
  const auto& cores = device().target().tensor_cores;
  for (size_t i = 0; i < cores.size(); ++i)
    for (size_t o = 0; o < std::size(opts); ++o) {
      const auto& [m, n, k] = (i + o) % 2 == 0 ? std::tuple(12, 32, 32) : std::tuple(7, 33, 41);
      SCOPED_TRACE(fmt::format("{}x{}x{} {}", m, n, k, cores[i].name.str()));
      const UOp kernel = codegen::test::narrow_matmul(m, n, k, cores[i].a_type, cores[i].b_type, cores[i].out);
      expect_right(kernel, codegen::parse_opts(fmt::format("TC(0,{}) {}", i, opts[o])));
    }
}

TEST_P(ArmProducts, HalvesAndBfloatsAreRoundedAfterEachOperation) {
  for (const DType d : {half, bf16})
    for (const int64_t n : {128, 131}) {
      SCOPED_TRACE(fmt::format("{} {}", n, repr(d)));
      expect_right(codegen::test::elementwise(n, {}, d), codegen::parse_opts("LANE(0,8)"), 0);
      expect_right(codegen::test::elementwise(n, {}, d), {}, 0);
    }
}

}  // namespace
}  // namespace tinygrad
