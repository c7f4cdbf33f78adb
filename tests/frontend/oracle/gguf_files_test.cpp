// What is written as GGUF, for PyPI's gguf to read: python/tests/model_files.py compares its values with ours. `make oracle-full` runs it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

#include <tinygrad/formats.h>
#include <tinygrad/tinygrad.h>

#include "support/test_scale.h"

namespace tinygrad {
namespace {

using formats::BlockFormat;

/// For each format of blocks a NAME.blocks.gguf that convert() writes, and beside it what our reader finds in that.
TEST(GgufFiles, AreWrittenForTheirOwnReader) {
  const char* folder = std::getenv("TG_MODEL_FILES");
  if (!folder) GTEST_SKIP() << "TG_MODEL_FILES is not set";
  const std::filesystem::path to = folder;
  std::mt19937_64 random(test::seed());
  std::normal_distribution<float> normal;
  std::vector<float> values(6 * 512);
  for (float& x : values) x = normal(random) * std::exp(normal(random));
  const nn::state::StateDict tensors{{"blk.0.w", Tensor(values, {6, 512})},
                                     {"blk.1.w", Tensor(values, {2, 3, 512})},
                                     {"odd", Tensor(values, {96, 32}).shrink_to({96, 31})},
                                     {"norm", Tensor(values).shrink_to({512})},
                                     {"half", Tensor(values, {12, 256}).cast(DType::float16).shrink_to({12, 7})},
                                     {"places", Tensor(std::vector<int32_t>{1, -2, 3})}};
  nn::state::safe_save(tensors, (to / "blocks").string());
  const auto plain = formats::open((to / "blocks").string());
  for (const BlockFormat format : {BlockFormat::Q8_0, BlockFormat::Q4_0, BlockFormat::Q4_K, BlockFormat::Q6_K, BlockFormat::MXFP4}) {
    const std::string file = (to / (std::string(layout_of(format).name) + ".blocks.gguf")).string();
    const formats::ConvertReport report = formats::convert(*plain, file, {.quantize = format});
    EXPECT_EQ(report.tensors, tensors.size());
    EXPECT_GE(report.quantized, 2U);
    nn::state::safe_save(formats::load(file), file + ".ours");
  }
  std::filesystem::remove(to / "blocks");
}

}  // namespace
}  // namespace tinygrad
