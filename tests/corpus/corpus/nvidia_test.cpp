// Kernels of real models, at full size, for NVIDIA's GPUs: each is rendered and assembled by that target's own assembler. Where there is
// none the tests say so and are skipped; `tools/venv --cuda` installs it.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include <tinygrad/errors.h>

#include "compiler/nvidia/assemble.h"
#include "compiler/nvidia/nvrtc.h"
#include "corpus/compile_all.h"
#include "support/nvidia_toolkit.h"
#include "support/test_scale.h"

namespace tinygrad::test {
namespace {

constexpr const char* kArchs[] = {"sm_80", "sm_90a", "sm_100a"};

using Compile = std::string (*)(const std::string& source, std::string_view arch);

class Nvidia : public testing::TestWithParam<const char*> {
 protected:
  void check(const char* renderer, size_t most_bytes, Compile compile, const std::string& missing) {
    if (!missing.empty()) GTEST_SKIP() << "NOTHING WAS ASSEMBLED: " << missing << "; tools/venv --cuda installs it";
    const std::vector<KernelSource> kernels = rendered_corpus(renderer, GetParam());
    const Compiled c = compile_all(kernels, most_bytes, [&](std::span<const KernelSource> some) {
      const std::string cubin = compile(as_one_text(some), GetParam());
      for (const KernelSource& k : some)
        if (const std::string name = kernel_symbol(k.name); cubin.find(".text." + name + '\0') == cubin.npos)
          throw CompileError("no code of " + name);
    });
    const auto with = [&](std::string_view word) {
      return std::ranges::count_if(kernels, [&](const KernelSource& k) { return k.source.find(word) != k.source.npos; });
    };
    const auto held = with("mma.sync"), shared = with("wgmma.mma_async"), kept = with("tcgen05.mma"), with_tf32 = with("cvt.rna.tf32.f32");
    const auto given = with("given[]");
    fmt::print(
        "{} for {}: {} kernels, {} with tensor cores, {} of them by wgmma and {} by tcgen05, {} TF32, {} are given memory, {} failed\n",
        renderer, GetParam(), c.kernels, held + shared + kept, shared, kept, with_tf32, given, c.failed);
    RecordProperty("kernels", int(c.kernels - c.failed));
    EXPECT_EQ(c.failed, 0u) << c.first_failure.substr(0, 4000);
    EXPECT_GT(c.kernels, 0u);
    if (sample_of() > 1) return;
    EXPECT_GE(c.kernels, 300u);
    EXPECT_GT(held, 0);
    EXPECT_GT(with_tf32, 0);
    EXPECT_EQ(shared > 0, GetParam() == std::string_view("sm_90a")) << "only Hopper has it";
    EXPECT_EQ(kept > 0, GetParam() == std::string_view("sm_100a")) << "only Blackwell has it";
    EXPECT_EQ(given > 0, GetParam() != std::string_view("sm_80")) << "tiles for those are larger than what may be declared";
  }

 private:
  const NvidiaToolkit toolkit_;
};

TEST_P(Nvidia, PtxOfModelsAssembles) { check("PTX", 0, compiler::assemble_ptx, compiler::ptx_assembler_missing()); }
TEST_P(Nvidia, CudaOfModelsCompiles) { check("CUDA", 64 << 10, compiler::compile_cuda, compiler::nvrtc_missing()); }

INSTANTIATE_TEST_SUITE_P(Corpus, Nvidia, testing::ValuesIn(kArchs), [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tinygrad::test
