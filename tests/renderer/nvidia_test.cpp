// What PTX and CUDA C look like, for people: tests/renderer/golden/ holds the texts of small kernels. After a change to code generation,
// TG_UPDATE_GOLDEN=1 writes them anew, and the difference is read. tests/runtime/backend/ runs PTX, tests/corpus/ assembles both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <tinygrad/errors.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "kernel/describe_kernel.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/ptx/ptx.h"
#include "uop/build.h"

namespace tinygrad {
namespace {

using namespace codegen::test;

struct Texts {
  std::string ptx, cuda;
};

Texts render(const UOp& kernel, const char* arch = "sm_90a") {
  const Target target = cuda_target(arch);
  const UOp linear = codegen::full_rewrite(kernel, target, {.noopt = true, .spec = 1});
  const KernelInfo info = describe_kernel(linear, kernel.arg_as<KernelArg>().name.str());
  return {renderer::render_ptx(target, linear, info), renderer::render_cuda(target, linear, info)};
}

void expect_golden(const std::string& name, const Texts& texts) {
  for (const auto& [text, ending] : {std::pair(&texts.ptx, ".ptx"), std::pair(&texts.cuda, ".cu")}) {
    const std::string path = TINYGRAD_DATA_DIR "/../tests/renderer/golden/" + name + ending;
    if (std::getenv("TG_UPDATE_GOLDEN")) std::ofstream(path) << *text;
    std::ostringstream golden;
    golden << std::ifstream(path).rdbuf();
    EXPECT_EQ(*text, golden.str()) << path;
  }
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Opt local(int axis, int n) { return {OptOp::LOCAL, axis, n}; }

/// out[i, j] = sum over k of a[i, k] * b[k, j], of 16-bit floats in float32
UOp narrow_product(DType d) {
  const UOp i = loop(32, 0), j = loop(16, 1), k = reduce_loop(32, 2);
  const UOp x = cast(read(arg(1, 32 * 32, d), i * 32 + k), DType::float32) * cast(read(arg(2, 32 * 16, d), k * 16 + j), DType::float32);
  return kernel({ended(write(arg(0, 32 * 16), i * 16 + j, reduce_over(Op::ADD, x, {k})), {i, j})}, {{OptOp::TC, 0, -1}});
}

TEST(Nvidia, Matmul) { expect_golden("matmul", render(matmul(8, 32, 12, {local(1, 16), {OptOp::UPCAST, 0, 2}}))); }
TEST(Nvidia, ItemsShareASum) { expect_golden("group_sum", render(row_sums(4, 256, {{OptOp::GROUP, 1, 16}}))); }
/// A GPU has no instruction from bfloat16 to an integer, so it goes through float32.
TEST(Nvidia, NarrowFloatsAreConvertedThroughFloat) {
  const UOp i = loop(64, 0), x = read(arg(1, 64, DType::bfloat16), i);
  const Texts texts = render(kernel({ended(write(arg(0, 64, DType::int32), i, cast(x, DType::int32)), {i})}), "sm_80");
  EXPECT_TRUE(has(texts.cuda, "from_bf16(")) << texts.cuda;
  EXPECT_FALSE(has(texts.cuda, "(float)")) << texts.cuda;
}

TEST(Nvidia, TensorCore) { expect_golden("tensor_core", render(narrow_product(DType::bfloat16))); }
/// The same for a core that reads memory, with more opts.
Texts render_large(int64_t m, int64_t n, int64_t depth, const char* arch, const char* name, std::vector<Opt> opts = {}) {
  const UOp i = loop(m, 0), j = loop(n, 1), k = reduce_loop(depth, 2);
  const DType d = DType::bfloat16;
  const UOp x =
      cast(read(arg(1, m * depth, d), i * depth + k), DType::float32) * cast(read(arg(2, depth * n, d), k * n + j), DType::float32);
  const auto& cores = cuda_target(arch).tensor_cores;
  const auto core = std::ranges::find(cores, Symbol(name), &TensorCore::name) - cores.begin();
  opts.insert(opts.begin(), {OptOp::TC, 0, int32_t(core)});
  return render(kernel({ended(write(arg(0, m * n), i * n + j, reduce_over(Op::ADD, x, {k})), {i, j})}, opts), arch);
}
TEST(Nvidia, FactorsInSharedMemory) {
  expect_golden("wgmma", render_large(64, 64, 32, "sm_90a", "wgmma_m64n64k16_kn_bf16_f32", {{OptOp::UNROLL, 2, 0}}));
}
TEST(Nvidia, SumsInTensorMemory) {
  expect_golden("tcgen05", render_large(128, 64, 64, "sm_100a", "tcgen05_m128n64k16_kn_bf16_f32", {{OptOp::UNROLL, 2, 2}}));
}
TEST(Nvidia, SumsStayInTensorMemoryWhileALoopRuns) {
  const Texts t = render_large(256, 128, 160, "sm_100a", "tcgen05_m128n64k16_kn_bf16_f32", {{OptOp::UPCAST, 1, 2}, {OptOp::UNROLL, 2, 2}});
  for (const auto& [text, loop] : {std::pair(&t.ptx, "bra $loop"), std::pair(&t.cuda, "  for (")}) {
    EXPECT_FALSE(has(*text, "tcgen05.st")) << *text;
    const size_t last = text->rfind(loop), first_read = text->find(text == &t.cuda ? "  read(" : "tcgen05.ld");
    EXPECT_LT(last, first_read) << *text;
  }
}
TEST(Nvidia, TilesCopiedAhead) {
  const auto ahead = [](int slot) { return Opt{OptOp::STAGE, 2, StageOpt{.slot = slot, .scope = Scope::group, .depth = 2}.arg()}; };
  expect_golden(
      "tiles",
      render(matmul(32, 32, 32,
                    {{OptOp::UPCAST, 0, 2}, {OptOp::UPCAST, 1, 4}, local(0, 4), local(1, 4), {OptOp::UNROLL, 2, 4}, ahead(1), ahead(2)})));
}
TEST(Nvidia, Halves) { expect_golden("halves", render(elementwise(64, {local(0, 8)}, DType::float16))); }

TEST(Nvidia, ConversionsAreTheTargetsOwn) {
  const Texts bf16 = render(elementwise(64, {}, DType::bfloat16), "sm_80"), fp8 = render(elementwise(64, {}, DType::fp8e4m3), "sm_89"),
              emulated = render(elementwise(64, {}, DType::fp8e4m3), "sm_80");
  EXPECT_TRUE(has(bf16.ptx, "cvt.rn.bf16.f32") && has(bf16.cuda, "cvt.rn.bf16.f32")) << bf16.ptx << bf16.cuda;
  EXPECT_TRUE(has(fp8.ptx, "cvt.rn.satfinite.e4m3x2.f32") && has(fp8.cuda, "cvt.rn.satfinite.e4m3x2.f32")) << fp8.ptx << fp8.cuda;
  EXPECT_FALSE(has(emulated.ptx, "e4m3") || has(emulated.cuda, "e4m3"));
}

/// out[i] = a[i], of another dtype
UOp conversion(DType from, DType to) {
  const UOp i = loop(64, 0);
  return kernel({ended(write(arg(0, 64, to), i, cast(read(arg(1, 64, from), i), to)), {i})});
}

TEST(Nvidia, FloatsThatAreBitsAreConvertedThroughFloat) {
  for (const auto& [d, type] :
       {std::pair(DType::bfloat16, "bf16"), std::pair(DType::fp8e4m3, "fp8e4m3"), std::pair(DType::fp8e5m2, "fp8e5m2")})
    for (const DType to : {DType::int32, DType::uint64, DType::float16, DType::float64, DType::bfloat16, DType::fp8e5m2}) {
      if (to == d) continue;
      const std::string cuda = render(conversion(d, to)).cuda;
      EXPECT_TRUE(has(cuda, fmt::format("from_{}({}{{", type, type))) << cuda;
      EXPECT_FALSE(has(cuda, fmt::format("){}{{", type))) << cuda;
    }
}

// The decomposition of an exponential has what rounding took from a product. The compiler of CUDA C, given the product and the sum, takes
// the rounded product for both, and then nothing was lost.
TEST(Nvidia, MultiplyAddsAreCalls) {
  const UOp i = loop(64, 0);
  for (const DType d : {DType::float32, DType::float64}) {
    const UOp factor = constant(d, d == DType::float32 ? double(1.4426950408889634f) : 1.4426950408889634);
    const std::string cuda = render(kernel({ended(write(arg(0, 64, d), i, alu(Op::EXP2, {read(arg(1, 64, d), i) * factor})), {i})})).cuda;
    EXPECT_TRUE(has(cuda, "fma(y1, ")) << cuda;
  }
}

TEST(Nvidia, VariablesAreArgumentsOf64Bits) {
  const UOp n = variable("n", 1, 64), i = range(cast(n, DType::index), RangeArg{.id = 0});
  const Texts t = render(kernel({ended(write(arg(0, 64), i, read(arg(1, 64), i) * 2), {i})}));
  EXPECT_TRUE(has(t.ptx, ".param .s64 variable0")) << t.ptx;
  EXPECT_TRUE(has(t.cuda, "long ")) << t.cuda;
}

TEST(Nvidia, MemoryThatNothingStoresToIsReadThroughTheConstantCache) {
  EXPECT_FALSE(has(render(elementwise(64)).ptx, ".nc")) << "the arguments may overlap";
  const UOp i = loop(64, 0);
  const auto apart = [](int slot) { return param(DType::float32, 64, ParamArg{.slot = slot, .alias = uint16_t(slot + 1)}); };
  EXPECT_TRUE(has(render(kernel({ended(write(apart(0), i, read(apart(1), i)), {i})})).ptx, "ld.global.nc.f32"));
}

TEST(Nvidia, VersionsOfPtxFollowTheArchitecture) {
  for (const auto& [arch, version] :
       {std::pair("sm_80", "8.4"), std::pair("sm_90a", "8.4"), std::pair("sm_100a", "8.6"), std::pair("sm_120", "8.7")})
    EXPECT_TRUE(has(render(elementwise(4), arch).ptx, std::string(".version ") + version + "\n.target " + arch)) << arch;
}

TEST(Nvidia, ChunksOfThreadsAreForCpus) {
  const UOp linear = codegen::full_rewrite(elementwise(16, {{OptOp::THREAD, 0, 4}}), cpu_target("x86-64-v3"), {.noopt = true});
  EXPECT_THROW(renderer::render_ptx(cuda_target("sm_80"), linear, describe_kernel(linear, "k")), InternalError);
}

}  // namespace
}  // namespace tinygrad
