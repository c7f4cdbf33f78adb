// The backend test cases of the package onnx, which `make onnx-nodes` makes and names the folder of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>

#include "frontend/onnx/case_data.h"
#include "support/test_scale.h"

namespace tinygrad::onnx::test {
namespace {

/// Cases whose outputs ours are not (docs/onnx.md); with random numbers they may be by chance.
const std::set<std::string> differences = {
    // Compare with numbers of NumPy's generator.
    "test_bernoulli",
    "test_bernoulli_double",
    "test_bernoulli_double_expanded",
    "test_bernoulli_expanded",
    "test_bernoulli_seed",
    "test_bernoulli_seed_expanded",
    "test_training_dropout",
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
    // Expect the rounding errors of an FFT in float32 where the exact result is 0.
    "test_dft_inverse",
    "test_dft_inverse_opset19",
    // Expect that each step of the softmax is rounded to float16.
    "test_attention_4d_causal_fp16",
    "test_attention_4d_causal_fp16_expanded",
};

/// TG_ONNX_CASES is the folder. With TG_ONNX_ONLY only cases run whose names contain it, with TG_ONNX_SHARE a drawn one in so many; with
/// TG_ONNX_CAPTURE they are captured and replayed.
void run_kind(const std::string& kind) {
  const char* folder = std::getenv("TG_ONNX_CASES");
  if (!folder) GTEST_SKIP() << "TG_ONNX_CASES names no folder";
  const char *only = std::getenv("TG_ONNX_ONLY"), *share = std::getenv("TG_ONNX_SHARE");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / kind)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  if (only) std::erase_if(names, [&](const std::string& n) { return n.find(only) == std::string::npos; });
  if (share) {
    std::mt19937 rng(tinygrad::test::seed());
    std::uniform_int_distribution<int> drawn(1, std::atoi(share));
    std::erase_if(names, [&](const std::string&) { return drawn(rng) != 1; });
  }
  size_t passed = 0;
  for (const std::string& name : names) {
    if (std::getenv("TG_ONNX_VERBOSE")) std::fprintf(stderr, "%s\n", name.c_str());
    const std::string why = run_case(fs::path(folder) / kind / name, std::getenv("TG_ONNX_CAPTURE") != nullptr);
    passed += why.empty();
    if (!why.empty()) std::printf("%s/%s: %s\n", kind.c_str(), name.c_str(), why.c_str());
    std::fflush(stdout);
    const bool is_dtype_of_device = why.find("has no dtypes.") != std::string::npos;  // some have none of 64 bits
    EXPECT_TRUE(why.empty() || is_dtype_of_device || differences.contains(name)) << name << ": " << why;
  }
  std::printf("onnx %s cases: %zu of %zu\n", kind.c_str(), passed, names.size());
}

TEST(OnnxCases, Simple) { run_kind("simple"); }
TEST(OnnxCases, PytorchConverted) { run_kind("pytorch-converted"); }
TEST(OnnxCases, PytorchOperator) { run_kind("pytorch-operator"); }
TEST(OnnxCases, Node) { run_kind("node"); }

}  // namespace
}  // namespace tinygrad::onnx::test
