// NVRTC, nvJitLink and ptxas as far as they are installed; tests/corpus/ has what models need of them.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <fstream>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "compiler/nvidia/assemble.h"
#include "compiler/nvidia/nvrtc.h"
#include "compiler/nvidia/toolkit.h"
#include "support/nvidia_toolkit.h"
#include "support/temp_folder.h"

namespace tinygrad {
namespace {

constexpr const char* kEmptyKernel = ".version 8.4\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}\n";

std::string message_of(auto&& f) {
  try {
    f();
  } catch (const CompileError& e) {
    return e.what();
  }
  return {};
}

TEST(NvidiaToolkit, SaysWhatIsMissing) {
  const Context nowhere{{.ccache = false, .cuda_path = "/nonexistent"}};
  EXPECT_NE(compiler::nvrtc_missing().find("pip install"), std::string::npos) << compiler::nvrtc_missing();
  EXPECT_NE(compiler::ptx_assembler_missing().find("neither nvJitLink nor ptxas"), std::string::npos) << compiler::ptx_assembler_missing();
  EXPECT_NE(message_of([] { compiler::assemble_ptx(kEmptyKernel, "sm_80"); }).find("CUDA_PATH"), std::string::npos);
  EXPECT_NE(message_of([] { compiler::compile_cuda("", "sm_80"); }).find("CUDA_PATH"), std::string::npos);
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
    const std::string message = message_of([] { compiler::assemble_ptx(kEmptyKernel, "sm_80"); });
    EXPECT_NE(message.find("no such thing"), std::string::npos) << message;
    EXPECT_NE(message.find(".visible .entry"), std::string::npos) << "the text is shown: " << message;
  }
  {
    const Context context{{.ccache = false, .cuda_path = crashes.folder()}};
    const std::string message = message_of([] { compiler::assemble_ptx(kEmptyKernel, "sm_80"); });
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
      message_of([] { compiler::assemble_ptx(".version 8.4\n.target sm_80\n.address_size 64\nnonsense\n", "sm_80"); });
  EXPECT_NE(message.find("nonsense"), std::string::npos) << message;
}

TEST(NvidiaToolkit, CompilesCuda) {
  const test::NvidiaToolkit toolkit;
  if (const std::string missing = compiler::nvrtc_missing(); !missing.empty()) GTEST_SKIP() << missing;
  EXPECT_TRUE(compiler::compile_cuda("extern \"C\" __global__ void k(float* x) { *x = 1; }", "sm_90a")
                  .starts_with("\x7f"
                               "ELF"));
  const std::string message = message_of([] { compiler::compile_cuda("extern \"C\" __global__ void k() { nonsense; }", "sm_90a"); });
  EXPECT_NE(message.find("nonsense"), std::string::npos) << message;
}

}  // namespace
}  // namespace tinygrad
