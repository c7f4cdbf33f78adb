// Kernels of real models, at full size, for NVIDIA's GPUs: each is rendered and assembled by that target's own assembler. Where there is
// none the tests say so and are skipped; `tools/venv --cuda` installs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include <tinygrad/context.h>
#include <tinygrad/errors.h>

#include "base/thread_pool.h"
#include "compiler/nvidia/assemble.h"
#include "compiler/nvidia/nvrtc.h"
#include "corpus/workloads.h"

namespace tinygrad::test {
namespace {

constexpr const char* kArchs[] = {"sm_80", "sm_90a", "sm_100a"};

/// The folder of the wheels in the project's virtual environment, where they are installed.
std::string wheels() {
  namespace fs = std::filesystem;
  const fs::path lib = fs::path(TINYGRAD_DATA_DIR) / ".." / "build" / "venv" / "lib";
  std::error_code none;
  for (const auto& python : fs::directory_iterator(lib, none))
    if (const fs::path folder = python.path() / "site-packages" / "nvidia" / "cu13"; fs::exists(folder)) return fs::canonical(folder);
  return {};
}

struct Result {
  size_t kernels = 0, failed = 0, with_tensor_cores = 0;
  std::string first_failure;
};

using Compile = std::string (*)(const std::string& source, std::string_view arch);

/// Every different source once.
Result compile_all(const std::string& renderer, const std::string& arch, Compile compile) {
  std::set<std::string> sources;
  for (const Corpus& c : corpus()) {
    const Context context{{.default_float = c.default_float, .dev = fmt::format("NULL:{}:{}", renderer, arch)}};
    for (std::string& source : c.sources()) sources.insert(std::move(source));
  }
  const std::vector<std::string> all(sources.begin(), sources.end());
  Result result{.kernels = all.size(), .first_failure = {}};
  for (const std::string& s : all) result.with_tensor_cores += s.find("mma.sync") != s.npos;
  std::mutex mutex;
  const auto options = Context::current();
  task_pool().parallel_for(all.size(), [&](size_t i) {
    const Context as_outside(options);
    try {
      const std::string cubin = compile(all[i], arch);
      if (!cubin.starts_with("\x7f"
                             "ELF"))
        throw CompileError("no cubin");
    } catch (const Error& e) {
      const std::lock_guard lock(mutex);
      if (result.failed++ == 0) result.first_failure = e.what();
    }
  });
  return result;
}

class Nvidia : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string folder = wheels(); !folder.empty()) toolkit_.emplace(ContextArgs{.ccache = false, .cuda_path = folder});
  }
  void check(const char* renderer, Compile compile, const std::string& missing) {
    if (!missing.empty()) GTEST_SKIP() << "NOTHING WAS ASSEMBLED: " << missing << "; tools/venv --cuda installs it";
    const Result r = compile_all(renderer, GetParam(), compile);
    fmt::print("{} for {}: {} kernels, {} with tensor cores, {} failed\n", renderer, GetParam(), r.kernels, r.with_tensor_cores, r.failed);
    EXPECT_EQ(r.failed, 0u) << r.first_failure.substr(0, 4000);
    EXPECT_GE(r.kernels, 300u);
    EXPECT_GT(r.with_tensor_cores, 0u);
  }

 private:
  std::optional<Context> uncached_{ContextArgs{.ccache = false}}, toolkit_;
};

TEST_P(Nvidia, PtxOfModelsAssembles) { check("PTX", compiler::assemble_ptx, compiler::ptx_assembler_missing()); }
TEST_P(Nvidia, CudaOfModelsCompiles) { check("CUDA", compiler::compile_cuda, compiler::nvrtc_missing()); }

INSTANTIATE_TEST_SUITE_P(Corpus, Nvidia, testing::ValuesIn(kArchs), [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tinygrad::test
