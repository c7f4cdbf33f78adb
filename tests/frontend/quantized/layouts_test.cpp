#include <gtest/gtest.h>

#include <tinygrad/formats.h>

#include "frontend/quantized/block_elements.h"

namespace tinygrad::formats {
namespace {

TEST(BlockLayouts, HaveNamesAndSizes) {
  for (const BlockFormat format : test::every_block_format()) {
    const BlockLayout& layout = layout_of(format);
    EXPECT_EQ(block_format_named(layout.name), format);
    EXPECT_GT(layout.bytes, 0);
    EXPECT_EQ(256 % layout.elements, 0);
    for (const size_t half : test::halves_of(format)) EXPECT_LE(half + 2, size_t(layout.bytes));
  }
  EXPECT_EQ(layout_of(BlockFormat::Q4_K).name, "Q4_K");
  EXPECT_EQ(layout_of(BlockFormat::Q4_K).bytes, 144);
  EXPECT_EQ(layout_of(BlockFormat::Q2_0).name, "Q2_0");
  EXPECT_EQ(layout_of(BlockFormat::IQ2_S).bytes, 82);
  EXPECT_FALSE(block_format_named("q4_k"));
  EXPECT_FALSE(block_format_named("Q4_2"));
}

}  // namespace
}  // namespace tinygrad::formats
