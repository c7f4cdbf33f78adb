// Kernels for every processor that cpu_target() knows: both renderers compile them, and what the host has the instructions of runs.
#include <gtest/gtest.h>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "compiler/clang/clang.h"
#include "compiler/llvm/llvm.h"
#include "kernel/describe_kernel.h"
#include "program/run_kernel.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/llvmir/llvmir.h"
#include "runtime/every_device.h"
#include "target/host_tiles.h"
#include "target/target.h"

namespace tinygrad {
namespace {

using codegen::heuristic_opts;
using codegen::parse_opts;

struct Case {
  std::string name;
  UOp kernel;
  std::vector<Opt> opts;
};

/// One kernel of each kind of arithmetic, with vectors as wide as the processor's and products as it multiplies them best.
std::vector<Case> cases_for(const Target& target) {
  namespace test = codegen::test;
  const auto in_vectors = [&](DType dtype) { return parse_opts(fmt::format("LANE(0,{})", std::max(2, target.lanes(dtype)))); };
  const auto chosen = [&](std::string name, const UOp& kernel) { return Case{std::move(name), kernel, heuristic_opts(kernel, target)}; };
  std::vector<Case> out = {
      chosen("softmax", test::softmax(16, 64)),
      chosen("matmul", test::matmul(32, 64, 24)),
      chosen("bfloat16 product", test::narrow_matmul(16, 32, 32, DType::bfloat16, DType::bfloat16, DType::float32)),
      chosen("int8 product", test::narrow_matmul(16, 32, 32, DType::uint8, DType::int8, DType::int32)),
  };
  for (const DType d : {DType::float16, DType::bfloat16, DType::float64, DType::uint8})
    out.push_back({fmt::format("elementwise {}", repr(d)), test::elementwise(128, {}, d), in_vectors(d)});
  return out;
}

/// By processor, "znver4".
class Processors : public testing::TestWithParam<std::string_view> {
 protected:
  void expect_compiles_and_runs(std::string_view renderer) {
    Target target = cpu_target(GetParam());
    set_renderer(target, renderer);
    const bool runs = host_runs(GetParam());
    if (runs) keep_usable_tiles(target);
    const Context choice{{.ccache = false, .dev = fmt::format("CPU:{}{}", renderer, runs ? fmt::format(":{}", GetParam()) : "")}};
    for (const Case& c : cases_for(target)) {
      const std::string failed = runs ? difference(target, c) : failure(target, c);
      EXPECT_EQ(failed, "") << c.name << " " << codegen::to_string(c.opts);
    }
  }

 private:
  static std::string compiled(const Target& target, const UOp& linear, const KernelInfo& info) {
    return target.renderer == Symbol("CLANG") ? compiler::compile_c(renderer::render_c(target, linear, info), target)
                                              : compiler::compile_llvmir(renderer::render_llvmir(target, linear, info), target.arch.str());
  }
  static std::string failure(const Target& target, const Case& c) {
    try {
      const UOp linear = codegen::full_rewrite(codegen::test::with_opts(c.kernel, c.opts), target, {.noopt = true});
      return compiled(target, linear, describe_kernel(linear, "k")).empty() ? "no object" : "";
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  static std::string difference(const Target& target, const Case& c) {
    Device& device = Device::get("CPU");
    const auto run = [&](const UOp& linear, const spec::EvalInputs& inputs) { return test::run_on_device(device, linear, inputs); };
    return codegen::test::difference_on(c.kernel, c.opts, target, run);
  }
};
INSTANTIATE_TEST_SUITE_P(Known, Processors, testing::ValuesIn(cpu_archs()), [](const auto& tested) {
  std::string name(tested.param);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

TEST_P(Processors, CompileKernelsInLlvm) { expect_compiles_and_runs("LLVM"); }

TEST_P(Processors, CompileKernelsInC) {
  if (const std::string missing = compiler::clang_missing(); !missing.empty()) GTEST_SKIP() << missing;
  expect_compiles_and_runs("CLANG");
}

TEST(Processors, TheHostRunsItself) {
  EXPECT_TRUE(host_runs(host_cpu_target().arch.str()));
  EXPECT_FALSE(host_runs("rv64gcv"));
}

}  // namespace
}  // namespace tinygrad
