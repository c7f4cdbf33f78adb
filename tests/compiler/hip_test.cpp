// Code objects for every AMD GPU that there is a Target for: made here, run nowhere here. What they compute is checked on the interpreter
// (tests/program/opts_test.cpp) and on the CPU (tests/renderer/hip_cpu_test.cpp).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "compiler/clang/clang.h"
#include "compiler/code_object.h"
#include "renderer/cstyle/cstyle.h"
#include "uop/graph.h"

namespace tinygrad {
namespace {

using namespace codegen::test;

constexpr std::string_view kArchs[] = {"gfx906",  "gfx90a",  "gfx942",  "gfx1030", "gfx1100", "gfx1101",
                                       "gfx1102", "gfx1103", "gfx1151", "gfx1200", "gfx1201"};

struct Made {
  std::string source;
  nlohmann::json kernel;
};

Made make(const UOp& kernel, const Target& target) {
  const UOp linear = codegen::full_rewrite(kernel, target, {.noopt = true, .spec = 1});
  std::string source = renderer::render_hip(target, linear, describe_kernel(linear, "k"));
  const std::string object = compiler::compile_hip(source, target);
  return {std::move(source), compiler::test::kernel_metadata(object)};
}

TEST(Hip, CodeObjectsSayWhatALaunchNeeds) {
  const Context fresh{{.ccache = false}};
  for (const std::string_view arch : kArchs) {
    SCOPED_TRACE(arch);
    const Target target = amd_target(arch);
    const UOp kernel = row_sums(4, 256, {{OptOp::GROUP, 1, 64}});
    const auto [source, made] = make(kernel, target);
    EXPECT_EQ(made.at("target"), fmt::format("amdgcn-amd-amdhsa--{}", arch));
    EXPECT_EQ(made.at(".name"), kernel_symbol("k"));
    EXPECT_EQ(made.at(".symbol"), kernel_symbol("k") + ".kd");
    EXPECT_EQ(made.at(".kernarg_segment_size"), 16);
    EXPECT_EQ(made.at(".group_segment_fixed_size"), 64 * 4) << source;
    EXPECT_EQ(made.at(".max_flat_workgroup_size"), 64);
    EXPECT_EQ(made.at(".wavefront_size"), arch.starts_with("gfx9") ? 64 : 32);
    EXPECT_EQ(made.at(".private_segment_fixed_size"), 0);
  }
}

TEST(Hip, ArgumentsAreAddressesThenVariablesOf64Bits) {
  const UOp n = variable("class", 1, 64), i = range(cast(n, DType::index), RangeArg{.id = 0});
  const Made made = make(kernel({ended(write(arg(0, 64), i, read(arg(1, 64), i) * 2), {i})}), amd_target("gfx942"));
  EXPECT_EQ(made.kernel.at(".kernarg_segment_size"), 24) << made.source;
  ASSERT_EQ(made.kernel.at(".args").size(), 3u);
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(made.kernel.at(".args")[k].at(".offset"), 8 * k);
    EXPECT_EQ(made.kernel.at(".args")[k].at(".size"), 8);
  }
}

TEST(Hip, EveryTensorCoreIsAnInstruction) {
  for (const std::string_view arch : {"gfx90a", "gfx942", "gfx1100", "gfx1201"}) {
    const Target target = amd_target(arch);
    for (size_t i = 0; i < target.tensor_cores.size(); ++i) {
      const TensorCore& core = target.tensor_cores[i];
      SCOPED_TRACE(fmt::format("{} {}", arch, core.name.str()));
      const UOp product = narrow_matmul(2 * core.m, core.n + 3, 2 * core.k, core.a_type, core.b_type, core.out);
      const Made made = make(with_opts(product, {{OptOp::TC, 0, int32_t(i)}}), target);
      EXPECT_NE(made.source.find(core.name.str()), std::string::npos) << made.source;
      EXPECT_EQ(made.kernel.at(".max_flat_workgroup_size"), core.items);
    }
  }
}

TEST(Hip, RefusedSourcesAreCompileErrors) {
  const Context fresh{{.ccache = false}};
  EXPECT_THROW(compiler::compile_hip("this is no program", amd_target("gfx90a")), CompileError);
}

}  // namespace
}  // namespace tinygrad
