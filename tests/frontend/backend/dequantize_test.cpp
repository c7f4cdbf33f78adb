// Blocks of quantized tensors: their elements, one kernel with what uses them, and quantizing.
#include "runtime/every_device.h"

#include <cstring>

#include <tinygrad/counters.h>
#include <tinygrad/tinygrad.h>

#include "frontend/quantized/block_elements.h"
#include "support/message_of.h"
#include "support/test_scale.h"

namespace tinygrad {
namespace {

using formats::BlockFormat;
using formats::QuantizedTensor;
using Floats = std::vector<float>;

std::string name_of(BlockFormat format) { return std::string(layout_of(format).name); }

QuantizedTensor tensor_of(BlockFormat format, const std::vector<uint8_t>& bytes, int64_t rows) {
  const formats::BlockLayout& layout = layout_of(format);
  const int64_t blocks = int64_t(bytes.size()) / layout.bytes / rows;
  return {format, {rows, blocks * layout.elements}, Tensor(bytes, {rows, blocks, layout.bytes}).realize()};
}

uint64_t kernels_of(const Tensor& t) {
  GlobalCounters::reset();
  t.realize();
  return GlobalCounters::kernel_count;
}

class DequantizeOn : public testing::TestWithParam<std::string> {
 protected:
  const Context on_device_{{.dev = GetParam()}};
  std::mt19937_64 random_{test::seed()};
};
INSTANTIATE_TEST_SUITE_P(All, DequantizeOn, testing::ValuesIn(test::tensor_devices()), test::device_test_name);

TEST_P(DequantizeOn, EveryFormatIsOneKernelThatGivesTheElements) {
  for (const BlockFormat format : test::every_block_format()) {
    const std::vector<uint8_t> bytes = test::random_blocks(format, 6, random_);
    const Tensor elements = tensor_of(format, bytes, 2).dequantize();
    EXPECT_EQ(elements.shape(), (Sizes{2, 3 * layout_of(format).elements}));
    EXPECT_EQ(kernels_of(elements), 1U) << name_of(format);
    const Floats want = test::elements_of(format, bytes), got = elements.tolist();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
          << name_of(format) << " " << i << ": " << got[i] << " " << want[i];
  }
}

class FusedOn : public DequantizeOn {};
INSTANTIATE_TEST_SUITE_P(Devices, FusedOn, testing::ValuesIn(test::every_device()), test::device_test_name);

TEST_P(FusedOn, WithAMatrixProduct) {
  constexpr int64_t rows = 8;
  for (const BlockFormat format :
       {BlockFormat::Q8_0, BlockFormat::Q4_K, BlockFormat::Q6_K, BlockFormat::IQ2_XS, BlockFormat::IQ4_NL, BlockFormat::MXFP4}) {
    const auto columns = int64_t(layout_of(format).elements) * 2;
    const std::vector<uint8_t> bytes = test::random_blocks(format, 2 * rows, random_);
    const Floats w = test::elements_of(format, bytes);
    for (const int64_t batch : {1, 3}) {
      Floats x;
      for (int64_t i = 0; i < batch * columns; ++i) x.push_back(float(int(random_() % 17)) - 8);
      const Tensor product = Tensor(x, {batch, columns}).realize().matmul(tensor_of(format, bytes, rows).dequantize().T());
      const uint64_t kernels = kernels_of(product);
      EXPECT_LE(kernels, uint64_t(batch == 1 ? 1 : 2)) << name_of(format);  // several rows may share elements that are stored
      const Floats got = product.tolist();
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t r = 0; r < rows; ++r) {
          double want = 0, size = 0;
          for (int64_t c = 0; c < columns; ++c) {
            const double term = double(x[size_t(b * columns + c)]) * double(w[size_t(r * columns + c)]);
            want += term;
            size += std::abs(term);
          }
          ASSERT_NEAR(got[size_t(b * rows + r)], want, 1e-6 * size) << name_of(format);
        }
    }
  }
}

class Dequantize : public testing::Test {
 protected:
  const Context on_cpu_{{.dev = "CPU"}};
  std::mt19937_64 random_{test::seed()};
};

TEST_F(Dequantize, GivesOtherDtypes) {
  const std::vector<uint8_t> bytes = test::random_blocks(BlockFormat::Q4_0, 4, random_);
  const QuantizedTensor q = tensor_of(BlockFormat::Q4_0, bytes, 2);
  EXPECT_EQ(q.dequantize(DType::float16).dtype(), DType::float16);
  EXPECT_EQ(q.dequantize(DType::bfloat16).tolist(), q.dequantize().cast(DType::bfloat16).tolist());
}

TEST_F(Dequantize, WithoutRows) {
  for (const BlockFormat format : test::every_block_format()) {
    const formats::BlockLayout& layout = layout_of(format);
    const QuantizedTensor none{format, {0, layout.elements}, Tensor::zeros({0, 1, layout.bytes}, {.dtype = DType::uint8})};
    EXPECT_EQ(none.dequantize().shape(), (Sizes{0, layout.elements}));
    EXPECT_TRUE(none.dequantize().tolist().empty());
  }
}

TEST_F(Dequantize, RefusesBlocksThatDoNotFit) {
  const Tensor bytes = Tensor::zeros({2, 3, 18}, {.dtype = DType::uint8});
  const auto of = [](const Sizes& shape, const Tensor& blocks) { return QuantizedTensor{BlockFormat::Q4_0, shape, blocks}.dequantize(); };
  EXPECT_EQ(of({2, 96}, bytes).shape(), (Sizes{2, 96}));
  EXPECT_THROW(of({}, bytes), ShapeError);
  EXPECT_THROW(of({2, 95}, bytes), ShapeError);
  EXPECT_THROW(of({2, 64}, bytes), ShapeError);
  EXPECT_THROW(of({192}, bytes), ShapeError);
  EXPECT_THROW(of({2, 96}, bytes.cast(DType::int32)), ShapeError);
  const std::string said = test::message_of<ShapeError>([&] { of({2, 64}, bytes); });
  EXPECT_NE(said.find("(2, 64) elements of Q4_0"), std::string::npos) << said;
}

class Quantize : public Dequantize {
 protected:
  Floats numbers(size_t count, float scale) {
    std::normal_distribution<float> any(0, scale);
    Floats out(count);
    for (float& v : out) v = any(random_);
    return out;
  }
};

TEST_F(Quantize, IsNear) {
  // The largest error, in parts of the largest magnitude of a block.
  const std::vector<std::pair<BlockFormat, float>> formats{{BlockFormat::Q8_0, 0.005f},
                                                           {BlockFormat::Q4_0, 0.13f},
                                                           {BlockFormat::Q4_K, 0.1f},
                                                           {BlockFormat::Q6_K, 0.04f},
                                                           {BlockFormat::MXFP4, 0.26f}};
  for (const auto& [format, bound] : formats)
    for (const float scale : {1e-2f, 1.0f, 300.0f}) {
      const Floats values = numbers(2048, scale);
      const QuantizedTensor q = formats::quantize(Tensor(values, {4, 512}), format);
      EXPECT_EQ(q.shape, (Sizes{4, 512}));
      EXPECT_EQ(q.format, format);
      const Floats back = q.dequantize().tolist();
      const auto size = size_t(layout_of(format).elements);
      for (size_t at = 0; at < values.size(); at += size) {
        float most = 0;
        for (size_t i = at; i < at + size; ++i) most = std::max(most, std::abs(values[i]));
        for (size_t i = at; i < at + size; ++i) ASSERT_LE(std::abs(back[i] - values[i]), bound * most) << name_of(format) << " " << i;
      }
    }
}

TEST_F(Quantize, KeepsWhatBlocksHold) {
  for (const BlockFormat format : {BlockFormat::Q8_0, BlockFormat::Q4_0, BlockFormat::MXFP4, BlockFormat::Q4_K, BlockFormat::Q6_K}) {
    EXPECT_EQ(formats::quantize(Tensor::zeros({2, 256}), format).dequantize().tolist(), Floats(512)) << name_of(format);
    // -8 ... 7 times a power of two, and for MXFP4 its own values.
    Floats values;
    for (int i = 0; i < 256; ++i)
      values.push_back(format == BlockFormat::MXFP4 ? float(test::block_elements::fp4(i % 16)) / 4 : float(i % 16 - 8) / 4);
    if (format == BlockFormat::Q8_0 || format == BlockFormat::Q4_K || format == BlockFormat::Q6_K)
      continue;  // 1 / 127 and 1 / 63 are no powers of two
    EXPECT_EQ(formats::quantize(Tensor(values), format).dequantize().tolist(), values) << name_of(format);
  }
}

TEST_F(Quantize, RefusesWhatItCannot) {
  EXPECT_THROW(formats::quantize(Tensor::ones({2, 256}), BlockFormat::Q5_K), ValueError);
  EXPECT_THROW(formats::quantize(Tensor::ones({2, 31}), BlockFormat::Q8_0), ShapeError);
  EXPECT_THROW(formats::quantize(Tensor::ones({32, 64}), BlockFormat::Q6_K), ShapeError);
  EXPECT_THROW(formats::quantize(Tensor(1.0), BlockFormat::Q8_0), ShapeError);
  Floats values(32);
  values[7] = INFINITY;
  EXPECT_NE(test::message_of<ValueError>([&] { formats::quantize(Tensor(values), BlockFormat::Q8_0); }).find("element 7"),
            std::string::npos);
  for (const BlockFormat format : {BlockFormat::Q8_0, BlockFormat::Q4_0, BlockFormat::Q4_K, BlockFormat::Q6_K}) {
    // Each format reaches another magnitude by scales up to 65504; what is finite must stay so, or be refused.
    for (const double value : {1e6, 3e7, 1e9, 3e38}) try {
        const Tensor back = formats::quantize(Tensor::full({256}, value), format).dequantize();
        EXPECT_NEAR(back.max().item() / value, 1, 0.1) << formats::layout_of(format).name << " " << value;
      } catch (const ValueError& e) {
        EXPECT_NE(std::string(e.what()).find("scale the values down"), std::string::npos) << e.what();
      }
    EXPECT_THROW(formats::quantize(Tensor::full({256}, 1e9), format), ValueError);
  }
  EXPECT_NEAR(formats::quantize(Tensor::full({32}, 3e38), BlockFormat::MXFP4).dequantize().max().item(), 3e38, 0.5e38);
  EXPECT_EQ(formats::quantize(Tensor::ones({0, 32}), BlockFormat::Q8_0).dequantize().shape(), (Sizes{0, 32}));
}

}  // namespace
}  // namespace tinygrad
