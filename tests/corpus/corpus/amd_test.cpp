// Kernels of real models, at full size, for AMD's GPUs: each becomes a code object, whose metadata is what a launch of it relies on.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "compiler/clang/clang.h"
#include "compiler/code_object.h"
#include "corpus/compile_all.h"

namespace tinygrad::test {
namespace {

void check(const nlohmann::json& kernel, const Target& target) {
  const auto need = [&](bool holds, const char* what) {
    if (!holds) throw CompileError(fmt::format("{}: {}", what, kernel.dump()));
  };
  need(kernel.at("target") == "amdgcn-amd-amdhsa--" + std::string(target.arch.str()), "another target");
  need(kernel.at(".kernarg_segment_size") == 8 * kernel.at(".args").size(), "arguments that are not 64 bits each");
  need(kernel.at(".group_segment_fixed_size") <= target.group_memory_bytes, "too much memory of a group");
  need(kernel.at(".max_flat_workgroup_size") <= target.max_group_items, "too large groups");
}

/// Each of the sources is a kernel of the code object that they become, and can be launched.
void check(std::span<const std::string> sources, const Target& target) {
  std::multiset<std::string> expected, found;
  for (const std::string& source : sources) expected.insert(kernel_in(source));
  for (const nlohmann::json& kernel : compiler::test::kernels_metadata(compiler::compile_hip(as_one_text(sources), target))) {
    found.insert(kernel.at(".name"));
    check(kernel, target);
  }
  if (found != expected) throw CompileError(fmt::format("kernels {} instead of {}", fmt::join(found, ", "), fmt::join(expected, ", ")));
}

class Amd : public testing::TestWithParam<const char*> {};

TEST_P(Amd, HipOfModelsCompiles) {
  const Context uncached{{.ccache = false}};
  const Target target = amd_target(GetParam());
  const std::vector<std::string> sources = rendered_corpus("HIP", GetParam());
  // Most of the time of a small kernel is the start of clang and lld.
  const Compiled c = compile_all(sources, 64 << 10, [&](std::span<const std::string> some) { check(some, target); });
  const std::string_view matrix_core = target.tensor_cores[0].items == 64 ? "__builtin_amdgcn_mfma" : "__builtin_amdgcn_wmma";
  const auto with_cores = std::ranges::count_if(sources, [&](const std::string& s) { return s.find(matrix_core) != s.npos; });
  fmt::print("HIP for {}: {} kernels, {} with matrix cores, {} failed\n", GetParam(), c.kernels, with_cores, c.failed);
  RecordProperty("kernels", int(c.kernels - c.failed));
  EXPECT_EQ(c.failed, 0u) << c.first_failure.substr(0, 4000);
  EXPECT_GE(c.kernels, 300u);
  EXPECT_GT(with_cores, 0);
}

INSTANTIATE_TEST_SUITE_P(Corpus, Amd, testing::Values("gfx90a", "gfx942", "gfx1100", "gfx1201"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tinygrad::test
