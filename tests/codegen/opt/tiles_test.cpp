// AMX: tensor cores of a CPU whose factors and sums are tile registers. What the interpreted device gets of a CPU's program, what the C of
// it gets with the registers emulated, and what it gets where the processor has them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

#include "codegen/choose/heuristic_opts.h"
#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/late/use_tile_registers.h"
#include "codegen/opt/parse_opts.h"
#include "compiler/llvm/llvm.h"
#include "device/device.h"
#include "kernel/describe_kernel.h"
#include "program/run_kernel.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/llvmir/llvmir.h"
#include "support/test_scale.h"
#include "support/tile_emulation.h"
#include "target/target.h"
#include "target/tensor_cores/tile_products.h"
#include "uop/build.h"

namespace tinygrad::codegen {
namespace {

using test::count;

/// A processor with all of AMX.
Target with_tiles() { return cpu_target("graniterapids"); }

std::string core(std::string_view name) {
  const auto& all = tensor_cores("amx_fp16");
  const auto at = std::ranges::find(all, Symbol(name), &TensorCore::name);
  EXPECT_NE(at, all.end()) << name;
  return fmt::format("TC(0,{}) ", at - all.begin());
}

/// How the factors lie in their arguments: "kn" is a along k, b along n.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  std::string_view lie = "kn";
  DType a = DType::bfloat16, b = DType::bfloat16, sum = DType::float32;

  /// out[i, j] = sum over k of a * b, of which `behind` is computed
  UOp kernel(
      const std::function<UOp(const UOp&)>& of_a = [](const UOp& x) { return x; },
      const std::function<UOp(const UOp&, const UOp&, const UOp&)>& behind = [](const UOp& x, const UOp&, const UOp&) { return x; }) const {
    const UOp i = test::loop(m, 0), j = test::loop(n, 1), at = test::reduce_loop(k, 2);
    const UOp x = test::read(test::arg(1, m * k, a), lie[0] == 'k' ? i * k + at : at * m + i),
              y = test::read(test::arg(2, k * n, b), lie[1] == 'k' ? j * k + at : at * n + j);
    const UOp total = test::reduce_over(Op::ADD, cast(of_a(x), sum) * cast(y, sum), {at});
    return test::kernel({test::ended(test::write(test::arg(0, m * n, sum), i * n + j, behind(total, i, j)), {i, j})});
  }
};

UOp compiled(const UOp& kernel, const std::string& opts) {
  return full_rewrite(test::with_opts(kernel, parse_opts(opts)), with_tiles(), {.noopt = true, .spec = 2});
}

const std::string tiles = "UPCAST(0,2) UPCAST(1,2) SWAP(0,1) STAGE(0,2,thread,1) STAGE(1,1,thread,1)";

struct Case {
  UOp kernel;
  std::string core, opts;
};

std::vector<Case> cases() {
  const auto bf16 = DType::bfloat16, f16 = DType::float16, f32 = DType::float32, s8 = DType::int8, u8 = DType::uint8, s32 = DType::int32;
  std::vector<Case> out{
      {Product{16, 16, 32}.kernel(), "tdpbf16ps", ""},
      {Product{16, 16, 96}.kernel(), "tdpbf16ps", ""},
      {Product{64, 64, 128}.kernel(), "tdpbf16ps", tiles},
      {Product{70, 67, 41}.kernel(), "tdpbf16ps", "UPCAST(0,2) UPCAST(1,2)"},
      {Product{70, 67, 41}.kernel(), "tdpbf16ps", tiles},
      {Product{33, 35, 131, "kn", f16, f16, f32}.kernel(), "tdpfp16ps", tiles},
      {Product{64, 96, 128}.kernel(), "tdpbf16ps", "UPCAST(0,2) UPCAST(1,3) UNROLL(2,2)"},
      {Product{64, 64, 128}.kernel(), "tdpbf16ps", "UPCAST(0,4) UPCAST(1,2)"},
      {Product{64, 128, 256}.kernel(), "tdpbf16ps", "BLOCK(2,2) OUTER(2,0) STAGE(0,2,thread,1)"},
      {Product{33, 35, 131, "kn", s8, s8, s32}.kernel(), "tdpbssd", tiles},
      {Product{33, 35, 131, "kn", s8, u8, s32}.kernel(), "tdpbsud", tiles},
      {Product{33, 35, 131, "kn", u8, s8, s32}.kernel(), "tdpbusd", tiles},
      {Product{33, 35, 131, "kn", u8, u8, s32}.kernel(), "tdpbuud", tiles},
      {Product{64, 64, 128, "kn", u8, u8, s32}.kernel(), "tdpbuud", "UPCAST(0,2) UPCAST(1,2) UNROLL(2,0)"},
      {Product{32, 32, 64}.kernel([](const UOp& x) { return max(x, constant(x.dtype(), 0)); }), "tdpbf16ps", tiles},
      {Product{37, 50, 64}.kernel([](const UOp& x) { return x; },
                                  [&](const UOp& x, const UOp& i, const UOp& j) {
                                    const UOp sum = x * test::read(test::arg(3, 50), j) + test::read(test::arg(4, 37), i);
                                    return max(sum, constant(DType::float32, 0));
                                  }),
       "tdpbf16ps", tiles},
  };
  for (const std::string_view lie : {"kk", "kn", "mk", "mn"}) {
    out.push_back({Product{35, 50, 70, lie, bf16}.kernel(), "tdpbf16ps", tiles});
    out.push_back({Product{35, 50, 70, lie, s8, s8, s32}.kernel(), "tdpbssd", tiles});
  }
  return out;
}

/// Bytes of all values, both signs, and floats.
spec::EvalInputs inputs_of(const UOp& kernel) {
  spec::EvalInputs inputs;
  std::mt19937 random(11);
  for (const UOp& u : toposort(kernel)) {
    if (!u.is(Op::PARAM) || u.src_count() == 0) continue;
    std::vector<double> values(size_t(shape_of(u)[0].value()));
    for (double& x : values)
      x = is_float(u.dtype())      ? double(random() % 2001) / 1000 - 1
          : is_unsigned(u.dtype()) ? double(random() % 256)
                                   : double(random() % 256) - 128;
    inputs.set(u, spec::Array::of(u.dtype(), values));
  }
  return inputs;
}

/// Where a kernel and the evaluator differ, or what was thrown on the way.
template <class Run>
std::string difference(const Case& c, Run&& run) {
  try {
    const UOp linear = compiled(c.kernel, core(c.core) + c.opts);
    const spec::EvalInputs inputs = inputs_of(c.kernel);
    spec::EvalInputs evaluated = inputs;
    spec::evaluate(std::span(&c.kernel, 1), evaluated);
    return test::difference(evaluated.params, run(linear, inputs));
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST(Tiles, TheInterpretedDeviceGetsTheSame) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.core + ": " + c.opts);
    EXPECT_EQ(difference(c, test::run_on_interp), "");
  }
}

std::map<int32_t, spec::Array> run_emulated(const UOp& linear, const spec::EvalInputs& inputs) {
  const Context choice{{.ccache = false, .dev = "CPU:CLANG"}};
  Device& device = Device::get("CPU");
  const KernelInfo info = describe_kernel(linear, "k");
  const std::string text = tinygrad::test::with_emulated_tiles(renderer::render_c(with_tiles(), linear, info));
  return test::run_on_host(*device.load(info, linear, device.compile(text)), info, inputs);
}

/// The meaning of each step is that of the kernel.
TEST(Tiles, EveryStepHasTheMeaningOfTheKernel) {
  const Case c{Product{33, 35, 40}.kernel(), "tdpbf16ps", tiles};
  EXPECT_EQ(test::difference_on_interp(c.kernel, parse_opts(core(c.core) + c.opts), with_tiles()), "");
}

TEST(Tiles, CWithEmulatedRegistersGetsTheSame) {
  for (const Case& c : tinygrad::test::sampled(cases())) {
    SCOPED_TRACE(c.core + ": " + c.opts);
    EXPECT_EQ(difference(c, run_emulated), "");
  }
}

/// On the processor itself, by both compilers.
TEST(Tiles, TheHostGetsTheSame) {
  const Target host = host_cpu_target();
  if (!std::ranges::any_of(host.tensor_cores, multiplies_tiles)) GTEST_SKIP() << "the processor has no AMX, or the system refuses it";
  for (const char* device : {"CPU:LLVM", "CPU:CLANG"})
    for (const Case& c : cases()) {
      SCOPED_TRACE(std::string(device) + " " + c.core + ": " + c.opts);
      if (std::ranges::find(host.tensor_cores, Symbol(c.core), &TensorCore::name) == host.tensor_cores.end()) continue;
      const auto run = [&](const UOp& linear, const spec::EvalInputs& inputs) {
        const Context choice{{.ccache = false, .dev = device}};
        Device& cpu = Device::get("CPU");
        const KernelInfo info = describe_kernel(linear, "k");
        return test::run_on_host(*cpu.load(info, linear, cpu.compile(cpu.render(linear, info))), info, inputs);
      };
      EXPECT_EQ(difference(c, run), "");
    }
}

bool is_tile_access(const UOp& u, Op op) { return u.is(op) && is_tensor_memory(u.src(op == Op::WMMA ? 2 : 0)); }

TEST(Tiles, SumsStayInRegistersWhileLoopsRun) {
  const UOp linear = compiled(Product{64, 64, 256}.kernel(), core("tdpbf16ps") + tiles);
  EXPECT_EQ(count(linear, [](const UOp& u) { return u.is(Op::BUFFER) && is_tensor_memory(u); }), 4u);
  EXPECT_EQ(count(linear, Op::WMMA), 4u);
  EXPECT_EQ(count(linear, [](const UOp& u) { return is_tile_access(u, Op::WMMA); }), 4u) << "in place";
  EXPECT_EQ(count(linear, [](const UOp& u) { return is_tile_access(u, Op::STORE); }), 4u) << "each is cleared once";
  EXPECT_EQ(count(linear, [](const UOp& u) { return is_tile_access(u, Op::LOAD); }), 4u) << "and stored once";
  // Outside of the loop of the sum.
  int depth = 0, of_products = 0, of_tiles = 0;
  for (const UOp& u : linear.src()) {
    depth += u.is(Op::RANGE) ? 1 : u.is(Op::END) ? 1 - int(u.src_count()) : 0;
    if (u.is(Op::WMMA)) of_products = depth;
    if (is_tile_access(u, Op::LOAD)) of_tiles = depth;
  }
  EXPECT_EQ(of_products, of_tiles + 1);
}

/// The disassembly's lines from the loop's first one to the jump back, of the innermost loop around the products.
std::vector<std::string> inner_loop(const std::string& disassembly) {
  std::vector<std::pair<long, std::string>> all;
  std::istringstream lines(disassembly);
  for (std::string line; std::getline(lines, line);)
    all.emplace_back(std::strtol(line.c_str(), nullptr, 16), line.substr(line.find(':') + 1));
  std::vector<std::string> best;
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    long by = 0;  // from the next instruction
    if (std::sscanf(all[i].second.c_str(), "\tj%*s %ld", &by) != 1 || by >= 0) continue;
    std::vector<std::string> body;
    for (size_t k = 0; k <= i; ++k)
      if (all[k].first >= all[i + 1].first + by) body.push_back(all[k].second);
    const bool multiplies = std::ranges::any_of(body, [](const std::string& x) { return x.starts_with("\ttdp"); });
    if (multiplies && (best.empty() || body.size() < best.size())) best = body;
  }
  return best;
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Tiles, InstructionsOfTheLoop) {
  if (const std::string why = compiler::llvm_missing(); !why.empty()) GTEST_SKIP() << why;
  const auto s8 = DType::int8, s32 = DType::int32;
  const Case cases[] = {{Product{512, 512, 512}.kernel(), "tdpbf16ps", tiles},
                        {Product{512, 512, 512, "kn", s8, s8, s32}.kernel(), "tdpbssd", tiles}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.core);
    const UOp linear = compiled(c.kernel, core(c.core) + c.opts);
    const std::string source = renderer::render_llvmir(with_tiles(), linear, describe_kernel(linear, "k"));
    const std::string text = compiler::disassemble_llvm(compiler::compile_llvmir(source, "graniterapids"), "graniterapids");
    for (const auto& [instruction, times] :
         {std::pair("ldtilecfg", 1), {"tilerelease", 1}, {"tilezero", 4}, {"tilestored", 4}, {"tileloadd", 4}, {c.core.c_str(), 4}})
      EXPECT_EQ(occurrences(text, fmt::format("\t{}", instruction)), size_t(times)) << instruction << "\n" << text;
    const std::vector<std::string> loop = inner_loop(text);
    const auto in_loop = [&](const std::string& part) {
      return std::ranges::count_if(loop, [&](const std::string& x) { return x.find(part) != std::string::npos; });
    };
    EXPECT_EQ(in_loop("\t" + c.core), 4);
    EXPECT_EQ(in_loop("\ttileloadd"), 4);
    EXPECT_LE(loop.size(), 16u) << fmt::format("{}", fmt::join(loop, "\n"));
    for (const char* wrong : {"tilestored", "ldtilecfg", "%rsp", "%rbp"}) EXPECT_EQ(in_loop(wrong), 0) << wrong;
  }
}

std::string chosen(const UOp& kernel) { return to_string(heuristic_opts(kernel, with_tiles())); }

TEST(Tiles, HeuristicsUseThemForLargeProducts) {
  EXPECT_EQ(chosen(Product{1024, 1024, 1024}.kernel()),
            "TC(0,0) UPCAST(0,2) UPCAST(1,2) BLOCK(1,8) SWAP(0,1) THREAD(0,4) STAGE(0,2,thread,1) STAGE(1,1,thread,1)");
  EXPECT_EQ(chosen(Product{64, 64, 100, "kn", DType::uint8, DType::int8, DType::int32}.kernel()),
            "TC(0,3) UPCAST(0,2) UPCAST(1,2) BLOCK(1,2) SWAP(0,1) STAGE(0,2,thread,1) STAGE(1,1,thread,1)");
}

TEST(Tiles, HeuristicsLeaveSmallProductsToVectors) {
  for (const auto& [m, n, k] : {std::tuple(1, 1024, 1024), {8, 1024, 1024}, {1024, 8, 1024}, {16, 16, 32}}) {
    const std::string opts = chosen(Product{m, n, k}.kernel());
    for (const char* core : {"TC(0,0)", "TC(0,1)", "TC(0,5)"}) EXPECT_EQ(opts.find(core), std::string::npos) << opts;
  }
}

/// out[h, i, j] = sum over k of a[h, i, k] * b[h, k, j]
UOp batched(int64_t count, int64_t m, int64_t n, int64_t depth) {
  const auto bf16 = DType::bfloat16;
  const UOp h = test::loop(count, 0), i = test::loop(m, 1), j = test::loop(n, 2), k = test::reduce_loop(depth, 3);
  const UOp x = cast(test::read(test::arg(1, count * m * depth, bf16), (h * m + i) * depth + k), DType::float32) *
                cast(test::read(test::arg(2, count * depth * n, bf16), (h * depth + k) * n + j), DType::float32);
  return test::kernel(
      {test::ended(test::write(test::arg(0, count * m * n), (h * m + i) * n + j, test::reduce_over(Op::ADD, x, {k})), {h, i, j})});
}

/// As the heuristics write them, of sizes that nothing divides, with a second cache so small that there are several blocks.
TEST(Tiles, WhatHeuristicsChooseGivesTheSame) {
  const auto s8 = DType::int8, u8 = DType::uint8, s32 = DType::int32;
  Target target = with_tiles();
  target.l2_bytes = 32 << 10;
  const std::vector<UOp> kernels{Product{64, 64, 64}.kernel(),
                                 Product{183, 139, 104, "kk"}.kernel(),
                                 Product{33, 257, 131}.kernel(),
                                 Product{70, 300, 129, "kk", u8, s8, s32}.kernel(),
                                 Product{70, 300, 129, "mn", s8, s8, s32}.kernel(),
                                 batched(3, 40, 50, 70),
                                 batched(32, 32, 32, 64)};
  for (const UOp& kernel : tinygrad::test::sampled(kernels)) {
    const UOp linear = full_rewrite(kernel, target, {.spec = 2});
    EXPECT_GT(count(linear, [](const UOp& u) { return is_tile_access(u, Op::WMMA); }), 0u);
    const spec::EvalInputs inputs = inputs_of(kernel);
    spec::EvalInputs evaluated = inputs;
    spec::evaluate(std::span(&kernel, 1), evaluated);
    EXPECT_EQ(test::difference(evaluated.params, run_emulated(linear, inputs)), "");
  }
}

TEST(Tiles, FactorsHaveToBeNearTheThread) {
  for (const char* wrong : {"STAGE(2,2,reg,1)", "STAGE(2,1,thread,1,computed)"})
    EXPECT_THROW(compiled(Product{32, 32, 64}.kernel(), core("tdpbf16ps") + wrong), ValueError) << wrong;
}

TEST(Tiles, OtherProgramsStayAsTheyAre) {
  const UOp linear = full_rewrite(test::matmul(8, 8, 8), cpu_target("sapphirerapids"), {});
  EXPECT_EQ(use_tile_registers(linear, cpu_target("sapphirerapids")), linear);
}

}  // namespace
}  // namespace tinygrad::codegen
