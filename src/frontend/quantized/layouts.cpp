#include <algorithm>
#include <array>

#include <tinygrad/formats.h>

namespace tinygrad::formats {

namespace {

// In the order of the enum.
constexpr std::array<BlockLayout, 27> layouts{
    {{"Q4_0", 32, 18},     {"Q4_1", 32, 20},    {"Q5_0", 32, 22},     {"Q5_1", 32, 24},     {"Q8_0", 32, 34},    {"Q8_1", 32, 36},
     {"Q2_K", 256, 84},    {"Q3_K", 256, 110},  {"Q4_K", 256, 144},   {"Q5_K", 256, 176},   {"Q6_K", 256, 210},  {"Q8_K", 256, 292},
     {"IQ2_XXS", 256, 66}, {"IQ2_XS", 256, 74}, {"IQ2_S", 256, 82},   {"IQ3_XXS", 256, 98}, {"IQ3_S", 256, 110}, {"IQ1_S", 256, 50},
     {"IQ1_M", 256, 56},   {"IQ4_NL", 32, 18},  {"IQ4_XS", 256, 136}, {"TQ1_0", 256, 54},   {"TQ2_0", 256, 66},  {"MXFP4", 32, 17},
     {"NVFP4", 64, 36},    {"Q1_0", 128, 18},   {"Q2_0", 64, 18}}};
static_assert(layouts.size() == size_t(BlockFormat::Q2_0) + 1);

}  // namespace

const BlockLayout& layout_of(BlockFormat format) { return layouts[size_t(format)]; }

std::optional<BlockFormat> block_format_named(std::string_view name) {
  const auto* const found = std::ranges::find(layouts, name, &BlockLayout::name);
  if (found == layouts.end()) return {};
  return BlockFormat(found - layouts.begin());
}

}  // namespace tinygrad::formats
