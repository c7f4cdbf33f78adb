// Code objects for every AMD GPU that there is a Target for: made here, run nowhere here. What they compute is checked on the interpreter
// (tests/codegen/opt/opts_test.cpp) and on the CPU (tests/renderer/hip_cpu_test.cpp).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "base/subprocess.h"
#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "compiler/clang/clang.h"
#include "compiler/code_object.h"
#include "kernel/describe_kernel.h"
#include "renderer/cstyle/cstyle.h"
#include "support/temp_folder.h"
#include "uop/graph.h"

namespace tinygrad {
namespace {

using namespace codegen::test;

constexpr std::string_view kArchs[] = {"gfx906",  "gfx90a",  "gfx942",  "gfx1030", "gfx1100", "gfx1101",
                                       "gfx1102", "gfx1103", "gfx1151", "gfx1200", "gfx1201"};

struct Made {
  std::string source, object;
  nlohmann::json kernel;
};

Made make(const UOp& kernel, const Target& target) {
  const UOp linear = codegen::full_rewrite(kernel, target, {.noopt = true, .spec = 1});
  std::string source = renderer::render_hip(target, linear, describe_kernel(linear, "k"));
  std::string object = compiler::compile_hip(source, target);
  nlohmann::json metadata = compiler::test::kernel_metadata(object);
  return {std::move(source), std::move(object), std::move(metadata)};
}

TEST(Hip, CodeObjectsSayWhatALaunchNeeds) {
  const Context fresh{{.ccache = false}};
  for (const std::string_view arch : kArchs) {
    SCOPED_TRACE(arch);
    const Target target = amd_target(arch);
    const UOp kernel = row_sums(4, 256, {{OptOp::GROUP, 1, 64}});
    const auto [source, object, made] = make(kernel, target);
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

/// "v_mfma_f32_32x32x8_f16": how LLVM 19 writes the instruction of a core.
std::string instruction_of(const TensorCore& core, std::string_view arch) {
  std::string name = "v_" + std::string(core.name.str());
  const auto replace = [&](std::string_view from, std::string_view to) {
    if (const size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
  };
  replace("_gfx12", "");
  if (core.items == 32) {  // integers of both signs are one instruction
    replace("_i8", "_iu8");
    replace("_u8", "_iu8");
  }
  for (const std::string_view same : {"_fp8", "_bf8"})
    if (core.a_type == core.b_type && name.ends_with(same)) return name.append(same);
  if (arch == "gfx90a") {  // an older way
    name.erase(name.rfind('_'), 1);
    if (core.a_type == DType::bfloat16) name += "_1k";
  }
  return name;
}

std::string disassembled(const std::string& object, std::string_view arch) {
  const std::string program = find_program("llvm-objdump-19");
  if (program.empty()) throw DeviceError("no llvm-objdump-19: `apt-get install llvm-19`");
  const tinygrad::test::TempFolder folder;
  return run_process({program, "-d", fmt::format("--mcpu={}", arch), folder.write("kernel.co", object)}, "").out;
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
      const std::string text = disassembled(made.object, arch), instruction = instruction_of(core, arch);
      EXPECT_NE(text.find(instruction + " "), std::string::npos) << instruction << "\n" << text.substr(0, 20000);
    }
  }
}

TEST(Hip, RefusedSourcesAreCompileErrors) {
  const Context fresh{{.ccache = false}};
  EXPECT_THROW(compiler::compile_hip("this is no program", amd_target("gfx90a")), CompileError);
}

}  // namespace
}  // namespace tinygrad
