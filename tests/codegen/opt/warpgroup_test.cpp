// Tensor cores that read their factors from memory of the group: what the tiles are, that they are filled as the factors lie, and that
// the interpreted device gets the same as the evaluator. PTX of it runs in tests/runtime/backend/ptx_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "codegen/choose/heuristic_opts.h"
#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "program/run_kernel.h"
#include "target/target.h"
#include "uop/build.h"

namespace tinygrad::codegen {
namespace {

using test::count;
using test::is_group;

const Target hopper = cuda_target("sm_90a");

/// The opt for a core of the target.
std::string core(std::string_view name) {
  const auto& all = hopper.tensor_cores;
  const auto at = std::ranges::find(all, Symbol(name), &TensorCore::name);
  EXPECT_NE(at, all.end()) << name;
  return fmt::format("TC(0,{}) ", at - all.begin());
}

/// How the factors lie in their arguments: "kn" is a along k, b along n.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  std::string_view lie = "kn";
  DType type = DType::float16, sum = DType::float32;

  /// out[i, j] = sum over k of a * b
  UOp kernel(const std::function<UOp(const UOp&)>& of_a = [](const UOp& x) { return x; }) const {
    const UOp i = test::loop(m, 0), j = test::loop(n, 1), at = test::reduce_loop(k, 2);
    const UOp a = test::read(test::arg(1, m * k, type), lie[0] == 'k' ? i * k + at : at * m + i),
              b = test::read(test::arg(2, k * n, type), lie[1] == 'k' ? j * k + at : at * n + j);
    const UOp x = cast(of_a(a), sum) * cast(b, sum);
    return test::kernel({test::ended(test::write(test::arg(0, m * n, sum), i * n + j, test::reduce_over(Op::ADD, x, {at})), {i, j})});
  }
};

UOp compiled(const UOp& kernel, const std::string& opts) {
  return full_rewrite(test::with_opts(kernel, parse_opts(opts)), hopper, {.noopt = true, .spec = 1});
}

const std::string tiles = "LOCAL(0,2) UNROLL(2,2) STAGE(2,1,group,2) STAGE(2,2,group,2)";

TEST(Warpgroup, FactorsAreReadWhereTheyWereCopiedTo) {
  for (const std::string_view lie : {"kk", "kn", "mk", "mn"}) {
    SCOPED_TRACE(lie);
    const UOp linear = compiled(Product{128, 128, 128, lie}.kernel(), core(fmt::format("wgmma_m64n128k16_{}_f16_f32", lie)) + tiles);
    EXPECT_EQ(count(linear, Op::WMMA), 4u) << "two in the loop, two behind it";
    EXPECT_EQ(count(linear, [](const UOp& u) { return u.is(Op::LOAD) && is_group(u.src(0)); }), 0u) << "nobody else reads the tiles";
    EXPECT_EQ(count(linear, [](const UOp& u) { return u.is(Op::STORE) && is_group(u.src(0)); }), 0u);
    EXPECT_GT(count(linear, Op::FETCH), 0u);
    for (const UOp& u : linear.src()) {
      if (u.is(Op::FETCH)) {
        EXPECT_EQ(u.src(0).arg_as<IndexArg>().width, 8) << "16 bytes";
      }
      if (u.is(Op::WMMA)) {
        EXPECT_TRUE(is_group(u.src(0)) && is_group(u.src(1))) << print_expr(u);
      }
    }
  }
}

TEST(Warpgroup, ProductsGoOnWithTheSumsOfThoseBefore) {
  const UOp linear = compiled(Product{128, 256, 256}.kernel(), core("wgmma_m64n128k16_kn_f16_f32") + "UPCAST(1,2) UNROLL(2,4)");
  EXPECT_EQ(count(linear, Op::WMMA), 8u) << "four for each of two tiles";
  EXPECT_EQ(count(linear, [](const UOp& u) { return u.is(Op::WMMA) && u.src(2).is(Op::WMMA); }), 6u);
  EXPECT_EQ(count(linear, Op::WMMA_WAIT), 1u) << "for all of them together";
}

TEST(Warpgroup, GivesTheSame) {
  struct Case {
    UOp kernel;
    std::string core, opts;
  };
  const auto f16 = DType::float16, bf16 = DType::bfloat16, s8 = DType::int8, s32 = DType::int32, e4m3 = DType::fp8e4m3;
  const UOp relu = Product{64, 64, 64}.kernel([](const UOp& x) { return max(x, constant(DType::float16, 0)); });
  std::vector<Case> cases{
      {Product{64, 64, 32}.kernel(), "wgmma_m64n64k16_kn_f16_f32", ""},
      {Product{128, 128, 96}.kernel(), "wgmma_m64n64k16_kn_f16_f32", "UPCAST(0,2) UPCAST(1,2) UNROLL(2,2)"},
      {Product{64, 128, 128}.kernel(), "wgmma_m64n64k16_kn_f16_f32", "LOCAL(1,2) STAGE(2,2,group,4)"},
      {Product{64, 128, 128}.kernel(), "wgmma_m64n64k16_kn_f16_f32", "GROUP(2,2) STAGE(2,2,group,1)"},
      {Product{64, 64, 128}.kernel(), "wgmma_m64n64k16_kn_f16_f32", "GROUPTOP(2,2) LOCAL(0,1)"},
      {Product{64, 64, 128}.kernel(), "wgmma_m64n64k16_kn_f16_f32", "BLOCK(2,4) STAGE(2,1,group,2) STAGE(2,2,group,1)"},
      {Product{64, 64, 128}.kernel(), "wgmma_m64n64k16_kn_f16_f32", "STAGE(0,1,group,1) STAGE(2,2,group,1)"},
      {Product{70, 67, 41}.kernel(), "wgmma_m64n64k16_kn_f16_f32", "LOCAL(0,2) STAGE(2,1,group,1)"},
      {Product{128, 64, 64, "kn", f16, f16}.kernel(), "wgmma_m64n64k16_kn_f16_f16", "LOCAL(0,2) UNROLL(2,2)"},
      {Product{64, 128, 64, "mk", bf16}.kernel(), "wgmma_m64n128k16_mk_bf16_f32", "UNROLL(2,2) STAGE(2,1,group,2)"},
      {Product{64, 64, 64, "kn", bf16}.kernel(), "wgmma_m64n64k16_mk_bf16_f32", "STAGE(2,2,group,2)"},
      {Product{64, 64, 128, "kk", s8, s32}.kernel(), "wgmma_m64n64k32_kk_s8_s8_s32", "UNROLL(2,2) STAGE(2,2,group,1)"},
      {Product{64, 64, 128, "kn", s8, s32}.kernel(), "wgmma_m64n64k32_kk_s8_s8_s32", "STAGE(2,1,group,2) STAGE(2,2,group,2)"},
      {Product{128, 64, 64, "kk", e4m3}.kernel(), "wgmma_m64n64k32_kk_e4m3_e4m3_f32", "UPCAST(0,2)"},
      {Product{64, 256, 64}.kernel(), "wgmma_m64n256k16_kn_f16_f32", "UNROLL(2,2)"},
      {relu, "wgmma_m64n64k16_kn_f16_f32", "STAGE(2,1,group,2) STAGE(2,2,group,2)"},
  };
  for (const std::string_view lie : {"kk", "kn", "mk", "mn"})
    cases.push_back({Product{128, 128, 128, lie}.kernel(), fmt::format("wgmma_m64n128k16_{}_f16_f32", lie), tiles});
  for (const Case& c : cases) {
    SCOPED_TRACE(c.core + ": " + c.opts);
    EXPECT_EQ(test::difference_on_interp(c.kernel, parse_opts(core(c.core) + c.opts), hopper, c.core.ends_with("f16_f16") ? 2e-2 : 1e-5),
              "");
  }
}

TEST(Warpgroup, TilesOfItemsDoNotFeedIt) {
  const UOp kernel = Product{64, 64, 64}.kernel();
  for (const char* wrong : {"STAGE(2,2,thread,1)", "STAGE(2,1,reg,1)", "STAGE(2,1,thread,1,computed)"})
    EXPECT_THROW(compiled(kernel, core("wgmma_m64n64k16_kn_f16_f32") + wrong), ValueError) << wrong;
}

/// What is wrong with a program, as the interpreted device sees it; "" if nothing is.
std::string fault(const UOp& linear, const UOp& kernel) {
  try {
    test::run_on_interp(linear, test::some_inputs(kernel));
    return {};
  } catch (const InternalError& e) {
    return e.what();
  }
}

TEST(Warpgroup, TheInterpretedDeviceFindsWhatIsMissing) {
  const UOp kernel = Product{128, 64, 128}.kernel(), linear = compiled(kernel, core("wgmma_m64n64k16_kn_f16_f32") + tiles);
  const auto without = [&](Op op) {
    UOps kept;
    for (const UOp& u : linear.src())
      if (!u.is(op)) kept.push_back(u);
    return fault(linear.with_src(kept), kernel);
  };
  EXPECT_EQ(fault(linear, kernel), "");
  EXPECT_NE(without(Op::BARRIER).find("race"), std::string::npos) << without(Op::BARRIER);
  EXPECT_NE(without(Op::WAIT).find("was not waited for"), std::string::npos) << without(Op::WAIT);
}

std::string chosen(const UOp& kernel, const Target& target = hopper) { return to_string(heuristic_opts(kernel, target)); }

TEST(Warpgroup, HeuristicsUseItWhereFactorsAreCopiedAsTheyLie) {
  for (const std::string_view lie : {"kk", "kn", "mk", "mn"}) {
    const std::string opts = chosen(Product{512, 512, 512, lie}.kernel());
    EXPECT_EQ(opts, core(fmt::format("wgmma_m64n128k16_{}_f16_f32", lie)) + "LOCAL(0,2) UNROLL(2,4) STAGE(2,1,group,3) STAGE(2,2,group,3)");
    const std::string wide = chosen(Product{8192, 4096, 512, lie}.kernel());
    EXPECT_EQ(wide, core(fmt::format("wgmma_m64n256k16_{}_f16_f32", lie)) + "LOCAL(0,2) UNROLL(2,4) STAGE(2,1,group,3) STAGE(2,2,group,3)")
        << "groups of it are many";
  }
  EXPECT_TRUE(chosen(Product{512, 64, 512}.kernel()).starts_with(core("wgmma_m64n64k16_kn_f16_f32") + "UPCAST(0,2)"));
  const auto uses = [](const UOp& kernel, const Target& target = hopper) {
    const std::string opts = chosen(kernel, target);
    if (!opts.starts_with("TC(0,")) return false;
    return target.tensor_cores[size_t(std::stoi(opts.substr(5)))].b.in_memory;
  };
  EXPECT_TRUE(uses(Product{512, 512, 512, "kk", DType::int8, DType::int32}.kernel()));
  EXPECT_TRUE(uses(Product{512, 512, 512, "kk", DType::float32}.kernel())) << "which codegen only asks for where TF32 is allowed";
  EXPECT_FALSE(uses(Product{512, 512, 512, "kn", DType::float32}.kernel()));
  EXPECT_FALSE(uses(Product{512, 512, 512, "kn", DType::int8, DType::int32}.kernel())) << "bytes lie along k";
  EXPECT_FALSE(uses(Product{512, 500, 512}.kernel()));
  EXPECT_FALSE(uses(Product{512, 512, 512}.kernel([](const UOp& x) { return max(x, constant(DType::float16, 0)); }))) << "it is computed";
  for (const char* other : {"sm_80", "sm_90", "sm_100", "sm_100a"})
    EXPECT_EQ(uses(Product{512, 512, 512}.kernel(), cuda_target(other)), other == std::string_view("sm_100a")) << other;
}

}  // namespace
}  // namespace tinygrad::codegen
