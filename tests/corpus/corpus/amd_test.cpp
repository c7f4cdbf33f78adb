// Kernels of real models, at full size, for AMD's GPUs: each becomes a code object, whose metadata is what a launch of it relies on.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "compiler/clang/clang.h"
#include "compiler/code_object.h"
#include "corpus/compile_all.h"

namespace tinygrad::test {
namespace {

/// "kernel_NAME" of the only kernel in a source.
std::string kernel_in(const std::string& source) {
  const size_t begin = source.find("void kernel_", source.find("extern \"C\"")) + 5;
  return source.substr(begin, source.find('(', begin) - begin);
}

void check(const std::string& source, const Target& target) {
  const nlohmann::json kernel = compiler::test::kernel_metadata(compiler::compile_hip(source, target));
  const auto need = [&](bool holds, const char* what) {
    if (!holds) throw CompileError(fmt::format("{}: {}\n{}", what, kernel.dump(), source));
  };
  need(kernel.at("target") == "amdgcn-amd-amdhsa--" + std::string(target.arch.str()), "another target");
  need(kernel.at(".name") == kernel_in(source), "another name");
  need(kernel.at(".kernarg_segment_size") == 8 * kernel.at(".args").size(), "arguments that are not 64 bits each");
  need(kernel.at(".group_segment_fixed_size") <= target.group_memory_bytes, "too much memory of a group");
  need(kernel.at(".max_flat_workgroup_size") <= target.max_group_items, "too large groups");
}

class Amd : public testing::TestWithParam<const char*> {};

TEST_P(Amd, HipOfModelsCompiles) {
  const Context uncached{{.ccache = false}};
  const Target target = amd_target(GetParam());
  const Compiled c = compile_all(
      "HIP", GetParam(), [&](const std::string& source) { check(source, target); },
      target.tensor_cores[0].items == 64 ? "__builtin_amdgcn_mfma" : "__builtin_amdgcn_wmma");
  fmt::print("HIP for {}: {} kernels, {} with matrix cores, {} failed\n", GetParam(), c.kernels, c.with_tensor_cores, c.failed);
  EXPECT_EQ(c.failed, 0u) << c.first_failure.substr(0, 4000);
  EXPECT_GE(c.kernels, 300u);
  EXPECT_GT(c.with_tensor_cores, 0u);
}

INSTANTIATE_TEST_SUITE_P(Corpus, Amd, testing::Values("gfx90a", "gfx942", "gfx1100", "gfx1201"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tinygrad::test
