// Blocks beside GGML's own library, bit by bit: tools/ggml installs it, and the environment variable TG_GGML names the library.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <tinygrad/tinygrad.h>

#include "frontend/gguf/types.h"
#include "frontend/quantized/block_elements.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

using formats::BlockFormat;
using Dequantize = void (*)(const void* blocks, float* to, int64_t count);
using QuantizeChunk = size_t (*)(int type, const float* from, void* to, int64_t start, int64_t rows, int64_t columns, const float* weights);

std::string name_of(BlockFormat format) { return std::string(layout_of(format).name); }

/// GGML's functions: of its names, letters behind the last underscore are capital only in "K".
class Ggml : public testing::TestWithParam<BlockFormat> {
 protected:
  void SetUp() override {
    const char* path = std::getenv("TG_GGML");
    if (!path) GTEST_SKIP() << "TG_GGML names no library of GGML; tools/ggml installs one";
    library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library_) << dlerror();
  }
  template <class Function>
  Function find(const std::string& name) const {
    return reinterpret_cast<Function>(dlsym(library_, name.c_str()));
  }
  Dequantize dequantize_row() const {
    std::string name = name_of(GetParam());
    const bool is_k = name.ends_with("_K");
    for (char& c : name) c = char(std::tolower(c));
    if (is_k) name.back() = 'K';
    return find<Dequantize>("dequantize_row_" + name);
  }
  /// TG_GGML_BLOCKS of them all together, a thousand times the scale of the tests otherwise.
  static int64_t blocks_in_all() { return int64_t(test::env_number("TG_GGML_BLOCKS", 1000 * uint64_t(test::test_scale()))); }

  const Context on_cpu_{{.dev = "CPU"}};
  std::mt19937_64 random_{test::seed()};

 private:
  void* library_ = nullptr;  // stays open
};

constexpr int64_t at_once = 20'000;

std::string format_name(const testing::TestParamInfo<BlockFormat>& tested) { return name_of(tested.param); }

class DequantizeAsGgml : public Ggml {};
INSTANTIATE_TEST_SUITE_P(All, DequantizeAsGgml, testing::ValuesIn(test::every_block_format()), format_name);

// Any bytes: scales are infinite, NaN and denormal too.
TEST_P(DequantizeAsGgml, BitByBit) {
  const Dequantize reference = dequantize_row();
  if (!reference) {
    ASSERT_EQ(GetParam(), BlockFormat::Q8_1);
    GTEST_SKIP() << "GGML has none";
  }
  const formats::BlockLayout& layout = layout_of(GetParam());
  const auto dequantize =
      jit([&](const Tensor& blocks) { return formats::QuantizedTensor{GetParam(), {at_once, layout.elements}, blocks}.dequantize(); });
  for (int64_t done = 0; done < blocks_in_all(); done += at_once) {
    std::vector<uint64_t> words(size_t(at_once * layout.bytes) / 8 + 1);
    for (uint64_t& w : words) w = random_();
    std::vector<float> want(size_t(at_once * layout.elements));
    reference(words.data(), want.data(), int64_t(want.size()));
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(words.data()), size_t(at_once * layout.bytes));
    const std::vector<float> got = dequantize(Tensor(bytes, {at_once, 1, layout.bytes}).realize()).tolist();
    if (std::memcmp(got.data(), want.data(), want.size() * sizeof(float)) == 0) continue;
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_TRUE(std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(want[i]) || (std::isnan(got[i]) && std::isnan(want[i])))
          << "element " << i % size_t(layout.elements) << " of block " << done + int64_t(i) / layout.elements << ": " << got[i] << ", "
          << want[i];
  }
}

class QuantizeAsGgml : public Ggml {};
INSTANTIATE_TEST_SUITE_P(All, QuantizeAsGgml,
                         testing::Values(BlockFormat::Q8_0, BlockFormat::Q4_0, BlockFormat::Q4_K, BlockFormat::Q6_K, BlockFormat::MXFP4),
                         format_name);

TEST_P(QuantizeAsGgml, ByteByByte) {
  const auto reference = find<QuantizeChunk>("ggml_quantize_chunk");
  ASSERT_TRUE(reference);
  const formats::BlockLayout& layout = layout_of(GetParam());
  const int type = int(frontend::gguf_type_id(GetParam()).value());
  for (int64_t done = 0; done < blocks_in_all(); done += at_once) {
    // Each block of another size, small enough for scales of 16 bits, and kind: normal, uniform, with an offset, whole numbers, mostly
    // zeros.
    std::vector<float> values(size_t(at_once * layout.elements));
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (size_t at = 0; at < values.size(); at += size_t(layout.elements)) {
      const float scale = std::exp(std::min(5 * normal(random_), 10.0F)), offset = random_() % 4 == 0 ? normal(random_) : 0;
      const uint64_t kind = random_() % 5;
      for (size_t i = at; i < at + size_t(layout.elements); ++i) {
        const float x = kind % 2 == 0 ? normal(random_) : uniform(random_);
        values[i] = kind == 3 ? std::round(4 * x) : kind == 4 && random_() % 8 != 0 ? 0 : scale * (x + offset);
      }
    }
    std::vector<uint8_t> want(size_t(at_once * layout.bytes));
    ASSERT_EQ(reference(type, values.data(), want.data(), 0, at_once, layout.elements, nullptr), want.size());
    const std::vector<uint8_t> got = formats::quantize(Tensor(values, {at_once, layout.elements}), GetParam()).blocks.tolist<uint8_t>();
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_EQ(got[i], want[i]) << "byte " << i % size_t(layout.bytes) << " of block " << done + int64_t(i) / layout.bytes;
  }
}

}  // namespace
}  // namespace tinygrad
