// Kernels of real models, at full size, for AMD's GPUs: each becomes a code object, whose metadata is what a launch of it relies on.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "compiler/clang/clang.h"
#include "compiler/code_object.h"
#include "corpus/compile_all.h"
#include "support/test_scale.h"

namespace tinygrad::test {
namespace {

using nlohmann::json;

/// What compilers left in memory because there are too few registers, over all kernels.
struct Spilled {
  std::mutex mutex;
  int64_t kernels = 0, most_bytes = 0;
  std::string worst;
};

/// Work-items that run in step, and what their registers come from: so many for each of the four units that share a group.
int64_t wave_of(const Target& target) { return target.arch.str().starts_with("gfx9") ? 64 : 32; }
int64_t registers_of(const Target& target) { return wave_of(target) == 64 ? 512 : 1536; }
int64_t most_registers(const Target& target) { return wave_of(target) == 64 ? 512 : 256; }

/// Of a group; as many as there may be, where variables say how many there are.
int64_t items_of(const KernelInfo& info, const Target& target) {
  int64_t items = 1;
  for (const IndexExpr& n : info.local) {
    if (!n.is_constant()) return target.max_group_items;
    items *= n.evaluate({});
  }
  return items;
}

void check(const json& made, const KernelInfo& info, const Target& target, Spilled& spilled) {
  const auto need = [&](bool holds, const std::string& what) {
    if (!holds) throw CompileError(fmt::format("{}: {}", what, made.dump()));
  };
  const std::string symbol = kernel_symbol(info.name);
  need(made.at("target") == "amdgcn-amd-amdhsa--" + std::string(target.arch.str()), "another target");
  need(made.at(".name") == symbol && made.at(".symbol") == symbol + ".kd", "another name");
  // Addresses, then variables.
  const json& arguments = made.at(".args");
  need(arguments.size() == info.params.size() + info.variables.size(), "another number of arguments");
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_memory = i < info.params.size();
    need(arguments[i].at(".offset") == 8 * i && arguments[i].at(".size") == 8, "an argument of another size or place");
    need(arguments[i].at(".value_kind") == (is_memory ? "global_buffer" : "by_value"), "an argument of another kind");
  }
  need(made.at(".kernarg_segment_size") == 8 * arguments.size() && made.at(".kernarg_segment_align") == 8, "arguments of another size");
  // The last array is not rounded up.
  const int64_t group = made.at(".group_segment_fixed_size"), items = items_of(info, target), wave = wave_of(target);
  need(group <= info.group_bytes && info.group_bytes < group + 16, fmt::format("the kernel has {} bytes for a group", info.group_bytes));
  need(group <= target.group_memory_bytes, "too much memory of a group");
  need(made.at(".max_flat_workgroup_size") == items, fmt::format("the kernel has {} items", items));
  need(items <= target.max_group_items, "too large groups");
  need(made.at(".wavefront_size") == wave, "waves of another size");
  // A group's waves are spread over four units and must all be there at once.
  const int64_t registers = made.at(".vgpr_count"), waves = (items + 4 * wave - 1) / (4 * wave);
  need(registers <= most_registers(target) && registers * waves <= registers_of(target), "too many registers");
  const int64_t spills = int64_t(made.at(".vgpr_spill_count")) + int64_t(made.at(".sgpr_spill_count"));
  if (spills == 0) return;
  const std::lock_guard lock(spilled.mutex);
  ++spilled.kernels;
  if (const int64_t bytes = made.at(".private_segment_fixed_size"); bytes > spilled.most_bytes) {
    spilled.most_bytes = bytes;
    spilled.worst = info.name;
  }
}

/// Each of the kernels is one of the code object that they become, and can be launched.
void check(std::span<const KernelSource> kernels, const Target& target, Spilled& spilled) {
  std::map<std::string, json> made;
  for (json& m : compiler::test::kernels_metadata(compiler::compile_hip(as_one_text(kernels), target)))
    made.emplace(m.at(".name").get<std::string>(), std::move(m));
  if (made.size() != kernels.size()) throw CompileError(fmt::format("{} kernels instead of {}", made.size(), kernels.size()));
  for (const KernelSource& k : kernels) {
    const auto found = made.find(kernel_symbol(k.name));
    if (found == made.end()) throw CompileError("no kernel " + k.name);
    check(found->second, k.info, target, spilled);
  }
}

class Amd : public testing::TestWithParam<const char*> {};

TEST_P(Amd, HipOfModelsCompiles) {
  const Context uncached{{.ccache = false}};
  const Target target = amd_target(GetParam());
  const std::vector<KernelSource> kernels = rendered_corpus("HIP", GetParam());
  // Most of the time of a small kernel is the start of clang and lld.
  Spilled spilled;
  const Compiled c = compile_all(kernels, 64 << 10, [&](std::span<const KernelSource> some) { check(some, target, spilled); });
  const std::string_view matrix_core = wave_of(target) == 64 ? "__builtin_amdgcn_mfma" : "__builtin_amdgcn_wmma";
  const auto with_cores =
      std::ranges::count_if(kernels, [&](const KernelSource& k) { return k.source.find(matrix_core) != k.source.npos; });
  fmt::print("HIP for {}: {} kernels, {} with matrix cores, {} failed; {} spill registers, at most {} bytes an item: {}\n", GetParam(),
             c.kernels, with_cores, c.failed, spilled.kernels, spilled.most_bytes, spilled.worst);
  RecordProperty("kernels", int(c.kernels - c.failed));
  EXPECT_EQ(c.failed, 0u) << c.first_failure.substr(0, 4000);
  EXPECT_GT(c.kernels, 0u);
  if (sample_of() > 1) return;
  EXPECT_GE(c.kernels, 300u);
  EXPECT_GT(with_cores, 0);
  // As it was when it was last looked at: 92 kernels at most, and 1588 bytes, where waves are of 64 items, else 17 and 260. A convolution
  // whose groups have 64 items instead of 4 spills most.
  EXPECT_LE(spilled.kernels, wave_of(target) == 64 ? 96 : 18);
  EXPECT_LE(spilled.most_bytes, wave_of(target) == 64 ? 1600 : 264) << spilled.worst;
}

INSTANTIATE_TEST_SUITE_P(Corpus, Amd, testing::Values("gfx90a", "gfx942", "gfx1100", "gfx1201"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tinygrad::test
