// NVRTC, nvJitLink and ptxas as far as they are installed; tests/corpus/ has what models need of them.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include <fmt/core.h>
#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/opt/parse_opts.h"
#include "compiler/nvidia/assemble.h"
#include "compiler/nvidia/nvrtc.h"
#include "compiler/nvidia/toolkit.h"
#include "kernel/describe_kernel.h"
#include "renderer/cstyle/cstyle.h"
#include "renderer/ptx/ptx.h"
#include "support/message_of.h"
#include "support/nvidia_toolkit.h"
#include "support/temp_folder.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

using test::message_of;

constexpr const char* kEmptyKernel = ".version 8.4\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}\n";

TEST(NvidiaToolkit, SaysWhatIsMissing) {
  const Context nowhere{{.ccache = false, .cuda_path = "/nonexistent"}};
  EXPECT_NE(compiler::nvrtc_missing().find("pip install"), std::string::npos) << compiler::nvrtc_missing();
  EXPECT_NE(compiler::ptx_assembler_missing().find("neither nvJitLink nor ptxas"), std::string::npos) << compiler::ptx_assembler_missing();
  EXPECT_NE(message_of<CompileError>([] { compiler::assemble_ptx(kEmptyKernel, "sm_80"); }).find("CUDA_PATH"), std::string::npos);
  EXPECT_NE(message_of<CompileError>([] { compiler::compile_cuda("", "sm_80"); }).find("CUDA_PATH"), std::string::npos);
}

TEST(NvidiaToolkit, SaysWhichNvrtcIsTooOld) {
  const test::TempFolder folder;
  std::filesystem::create_directory(folder.path("lib"));
  std::filesystem::copy_file(TG_FAKE_OLD_NVRTC, folder.path("lib/libnvrtc.so.12"));
  const Context old{{.ccache = false, .cuda_path = folder.path()}};
  const std::string missing = compiler::nvrtc_missing();
  EXPECT_NE(missing.find("has version 12.1, expected 12.4 or newer"), std::string::npos) << missing;
  EXPECT_NE(message_of<CompileError>([] { compiler::compile_cuda("", "sm_80"); }).find(missing), std::string::npos);
}

/// A program in the place of ptxas.
class FakePtxas {
 public:
  explicit FakePtxas(const std::string& script) {
    ::mkdir((folder_.path() + "/bin").c_str(), 0755);
    const std::string path = folder_.path() + "/bin/ptxas";
    std::ofstream(path) << "#!/bin/sh\n" << script;
    ::chmod(path.c_str(), 0755);
  }
  std::string folder() const { return folder_.path(); }

 private:
  test::TempFolder folder_;
};

TEST(NvidiaToolkit, AnAssemblerThatFailsOrCrashes) {
  const FakePtxas refuses("echo 'line 4; error: no such thing' >&2; exit 255"), crashes("kill -SEGV $$"),
      works("cat > /dev/null; printf CUBIN");
  {
    const Context context{{.ccache = false, .cuda_path = refuses.folder()}};
    const std::string message = message_of<CompileError>([] { compiler::assemble_ptx(kEmptyKernel, "sm_80"); });
    EXPECT_NE(message.find("no such thing"), std::string::npos) << message;
    EXPECT_NE(message.find(".visible .entry"), std::string::npos) << "the text is shown: " << message;
  }
  {
    const Context context{{.ccache = false, .cuda_path = crashes.folder()}};
    const std::string message = message_of<CompileError>([] { compiler::assemble_ptx(kEmptyKernel, "sm_80"); });
    EXPECT_NE(message.find("failed (-11)"), std::string::npos) << message;
  }
  const Context context{{.ccache = false, .cuda_path = works.folder()}};
  EXPECT_EQ(compiler::assemble_ptx(kEmptyKernel, "sm_80"), "CUBIN");
}

TEST(NvidiaToolkit, Assembles) {
  const test::NvidiaToolkit toolkit;
  if (const std::string missing = compiler::ptx_assembler_missing(); !missing.empty()) GTEST_SKIP() << missing;
  EXPECT_TRUE(compiler::assemble_ptx(kEmptyKernel, "sm_80")
                  .starts_with("\x7f"
                               "ELF"));
  const std::string message =
      message_of<CompileError>([] { compiler::assemble_ptx(".version 8.4\n.target sm_80\n.address_size 64\nnonsense\n", "sm_80"); });
  EXPECT_NE(message.find("nonsense"), std::string::npos) << message;
}

TEST(NvidiaToolkit, CompilesCuda) {
  const test::NvidiaToolkit toolkit;
  if (const std::string missing = compiler::nvrtc_missing(); !missing.empty()) GTEST_SKIP() << missing;
  EXPECT_TRUE(compiler::compile_cuda("extern \"C\" __global__ void k(float* x) { *x = 1; }", "sm_90a")
                  .starts_with("\x7f"
                               "ELF"));
  const std::string message =
      message_of<CompileError>([] { compiler::compile_cuda("extern \"C\" __global__ void k() { nonsense; }", "sm_90a"); });
  EXPECT_NE(message.find("nonsense"), std::string::npos) << message;
}

/// Every tensor core of every target, TF32 too, is an instruction that its assembler knows.
class NvidiaTensorCores : public testing::TestWithParam<const char*> {
 protected:
  using Render = std::function<std::string(const Target&, const UOp& linear, const KernelInfo&)>;
  using Compile = std::function<std::string(const std::string& source, std::string_view arch)>;

  static void check(const Render& render, const Compile& compile) {
    const Target target = cuda_target(GetParam());
    const std::vector<size_t> some = test::sampled_below(target.tensor_cores.size());
    for (const size_t i : some) {
      const TensorCore& core = target.tensor_cores[i];
      SCOPED_TRACE(core.name.str());
      const int columns = core.b.in_memory ? core.n : core.n + 3;  // of wide ones masks take long to compile
      const UOp product = codegen::test::narrow_matmul(2 * core.m, columns, 2 * core.k, core.a_type, core.b_type, core.out);
      const UOp linear = codegen::full_rewrite(codegen::test::with_opts(product, {{OptOp::TC, 0, int32_t(i)}}), target,
                                               {.noopt = true, .allow_tf32 = true, .spec = 1});
      const std::string source = render(target, linear, describe_kernel(linear, "k"));
      const std::string instruction = core.tensor_memory ? "tcgen05.mma.cta_group::1" : fmt::format("m{}n{}k{}.", core.m, core.n, core.k);
      EXPECT_NE(source.find(instruction), std::string::npos) << source;
      std::string cubin;
      EXPECT_NO_THROW(cubin = compile(source, GetParam()));
      EXPECT_NE(cubin.find(".text." + kernel_symbol("k") + '\0'), std::string::npos) << source;
    }
    RecordProperty("kernels", int(some.size()));
  }

  const test::NvidiaToolkit toolkit_;
};

TEST_P(NvidiaTensorCores, OfCudaC) {
  if (const std::string missing = compiler::nvrtc_missing(); !missing.empty()) GTEST_SKIP() << missing;
  check(renderer::render_cuda, compiler::compile_cuda);
}

TEST_P(NvidiaTensorCores, OfPtx) {
  if (const std::string missing = compiler::ptx_assembler_missing(); !missing.empty()) GTEST_SKIP() << missing;
  check(renderer::render_ptx, compiler::assemble_ptx);
}

TEST_P(NvidiaTensorCores, OfPtxForPtxas) {
  const std::string ptxas = compiler::toolkit_program("ptxas");
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas; " << compiler::how_to_install_toolkit();
  const test::TempFolder alone;
  std::filesystem::create_directory(alone.path("bin"));
  std::filesystem::create_symlink(ptxas, alone.path("bin/ptxas"));
  const Context without_the_rest{{.cuda_path = alone.path()}};
  check(renderer::render_ptx, compiler::assemble_ptx);
}

/// Tiles of more than the text of a kernel may declare.
TEST(NvidiaToolkit, GroupMemoryThatTheLaunchGives) {
  using namespace codegen::test;
  const test::NvidiaToolkit toolkit;
  const auto opts =
      codegen::parse_opts("UPCAST(0,4) UPCAST(1,4) LOCAL(0,16) LOCAL(1,16) UNROLL(2,32) STAGE(2,1,group,4) STAGE(2,2,group,4)");
  const Target target = cuda_target("sm_80");
  const UOp linear = codegen::full_rewrite(with_opts(matmul(64, 64, 256), opts), target, {.noopt = true, .spec = 1});
  const KernelInfo info = describe_kernel(linear, "k");
  ASSERT_GT(given_group_bytes(target, info), 64 << 10);
  if (compiler::ptx_assembler_missing().empty()) {
    EXPECT_NO_THROW(compiler::assemble_ptx(renderer::render_ptx(target, linear, info), "sm_80"));
  }
  if (compiler::nvrtc_missing().empty()) {
    EXPECT_NO_THROW(compiler::compile_cuda(renderer::render_cuda(target, linear, info), "sm_80"));
  }
}

INSTANTIATE_TEST_SUITE_P(On, NvidiaTensorCores, testing::Values("sm_80", "sm_90a", "sm_100a"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tinygrad
