// Model files, written as files of other formats.
#include <gtest/gtest.h>

#include <filesystem>

#include <tinygrad/formats.h>
#include <tinygrad/tinygrad.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "frontend/torch/checkpoints.h"
#include "support/message_of.h"

namespace tinygrad {
namespace {

using namespace formats;
using nn::state::safe_load;
using nn::state::safe_load_metadata;
using nn::state::safe_save;
using nn::state::StateDict;

class Convert : public TempDir {
 protected:
  ConvertReport convert(const std::string& from, const std::string& to, const ConvertOptions& options = {}) {
    return formats::convert(*formats::open(path(from)), path(to), options);
  }
  template <class Error = ValueError>
  std::string refused(const std::string& from, const std::string& to, const ConvertOptions& options = {}) {
    const std::string message = test::message_of<Error>([&] { convert(from, to, options); });
    EXPECT_FALSE(std::filesystem::exists(path(to))) << to;
    return message;
  }
  std::vector<std::byte> bytes_of(const std::string& file, const std::string& name) { return formats::load(path(file)).at(name).data(); }
};

Tensor weights(int64_t rows, int64_t columns) {
  std::vector<float> values(size_t(rows * columns));
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(int(i * 37 % 101) - 50) / 16;
  return Tensor(values, {rows, columns});
}

auto value_of(const Metadata& metadata, const std::string& name) {
  for (const MetadataEntry& e : metadata)
    if (e.first == name) return e.second.value;
  throw IndexError(name);
}

TEST_F(Convert, EveryDtypeThereAndBack) {
  StateDict all;
  for (const DType d : dtypes::all) {
    std::vector<std::byte> bytes(6 * itemsize(d));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = d == DType::bool_ ? std::byte(i % 2) : std::byte(17 * i + 3);
    all.emplace(std::string(repr(d)), Tensor(bytes, d, {2, 3}));
  }
  safe_save(all, path("a.safetensors"));
  const ConvertReport report = convert("a.safetensors", "b.safetensors");
  EXPECT_EQ(report.tensors, all.size());
  EXPECT_EQ(report.quantized, 0U);
  for (const auto& [name, t] : safe_load(path("b.safetensors"))) EXPECT_EQ(t.data(), all.at(name).data()) << name;

  convert("a.safetensors", "a.npz");
  for (const auto& [name, t] : formats::load(path("a.npz"))) {
    const Tensor& was = all.at(name);
    EXPECT_EQ(t.data(), was.cast(t.dtype()).data()) << name;
    EXPECT_EQ(t.cast(was.dtype()).tolist<double>(), was.tolist<double>()) << name;
  }
  convert("a.npz", "c.safetensors");
  EXPECT_EQ(bytes_of("c.safetensors", "dtypes.uint16"), all.at("dtypes.uint16").data());
  EXPECT_EQ(safe_load(path("c.safetensors")).at("dtypes.bfloat16").dtype(), DType::float32);

  EXPECT_NE(refused<DTypeError>("a.safetensors", "refused.gguf").find("dtypes.uint64"), std::string::npos);
  all.erase("dtypes.uint64");
  safe_save(all, path("a.safetensors"));
  convert("a.safetensors", "a.gguf");
  for (const auto& [name, t] : formats::load(path("a.gguf")))
    EXPECT_EQ(t.cast(all.at(name).dtype()).tolist<double>(), all.at(name).tolist<double>()) << name;
}

TEST_F(Convert, CheckpointsOfPyTorch) {
  using namespace test::pickle;
  const std::string storage = test::pickle::storage("FloatStorage", "0", 6);
  const std::string object =
      dict({text("model"), dict({text("w"), tensor(storage, 0, {3, 2}, {1, 3}), text("tied"), tensor(storage, 0, {6}, {1})}), text("epoch"),
            integer(7), text("names"), list({text("a"), "N"}), text("lrs"), list({integer(1), integer(2)})});
  write_file_atomic(path("net.pt"), archive(object, {{"0", test::pickle::bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6})}}));
  convert("net.pt", "net.safetensors");
  EXPECT_EQ(safe_load(path("net.safetensors")).at("model.w").tolist(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(safe_load(path("net.safetensors")).at("model.tied").tolist(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const auto texts = safe_load_metadata(path("net.safetensors")).metadata;
  EXPECT_EQ(texts.at("epoch"), "7");
  EXPECT_EQ(texts.at("names"), R"(["a",null])");
  convert("net.pt", "net.gguf");
  const auto [metadata, tensors] = nn::state::gguf_load(path("net.gguf"));
  EXPECT_EQ(tensors.at("model.w").tolist(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(std::get<int64_t>(value_of(metadata, "epoch")), 7);
  EXPECT_EQ(std::get<std::string>(value_of(metadata, "names")), R"(["a",null])");
  EXPECT_EQ(std::get<std::vector<MetadataValue>>(value_of(metadata, "lrs")).size(), 2U);
}

TEST_F(Convert, BlocksStayBlocksInGguf) {
  const QuantizedTensor blocks = quantize(weights(2, 256), BlockFormat::Q4_K);
  gguf_save(std::vector<NamedTensor>{{"q", blocks}, {"b", Tensor({1.0, 2.0})}}, path("a.gguf"),
            {{"general.name", {std::string("n")}}, {"split.count", {uint64_t{1}}}, {"split.no", {uint64_t{0}}}});
  convert("a.gguf", "b.gguf");
  const auto file = formats::open(path("b.gguf"));
  EXPECT_EQ(file->tensors()[0].type, "Q4_K");
  EXPECT_EQ(file->quantized(0)->blocks.data(), blocks.blocks.data());
  ASSERT_EQ(file->metadata().size(), 1U);  // without what was said of several files
  convert("a.gguf", "a.safetensors");
  EXPECT_EQ(bytes_of("a.safetensors", "q"), blocks.dequantize().data());
  EXPECT_EQ(safe_load_metadata(path("a.safetensors")).metadata.at("general.name"), "n");
}

TEST_F(Convert, Quantizes) {
  safe_save({{"w", weights(3, 512)},
             {"half", weights(2, 256).cast(DType::float16)},
             {"bias", Tensor::ones({256})},
             {"odd", weights(2, 100)},
             {"ids", Tensor::zeros({2, 256}, {.dtype = DType::int32})}},
            path("a.safetensors"));
  for (const BlockFormat format : {BlockFormat::Q8_0, BlockFormat::Q4_0, BlockFormat::Q4_K, BlockFormat::Q6_K, BlockFormat::MXFP4}) {
    const ConvertReport report = convert("a.safetensors", "a.gguf", {.quantize = format});
    EXPECT_EQ(report.tensors, 5U);
    EXPECT_EQ(report.quantized, 2U);
    const auto file = formats::open(path("a.gguf"));
    int64_t bytes = 0;
    for (size_t i = 0; i < file->tensors().size(); ++i) {
      const TensorInfo& t = file->tensors()[i];
      bytes += t.bytes;
      EXPECT_EQ(t.type == layout_of(format).name, t.name == "w" || t.name == "half") << t.name << t.type;
      if (t.name != "w") continue;
      EXPECT_EQ(file->quantized(i)->blocks.data(), quantize(weights(3, 512), format).blocks.data());
    }
    EXPECT_EQ(report.bytes, bytes);
  }
  convert("a.gguf", "b.gguf", {.quantize = BlockFormat::Q8_0});  // what is in blocks, too
  const Tensor w = formats::load(path("a.gguf")).at("w");
  for (const auto& file = formats::open(path("b.gguf")); const TensorInfo& t : file->tensors())
    EXPECT_EQ(t.type == "Q8_0", t.name == "w" || t.name == "half") << t.name << t.type;
  EXPECT_EQ(bytes_of("b.gguf", "w"), quantize(w, BlockFormat::Q8_0).dequantize().data());
}

TEST_F(Convert, WhatIsRefusedLeavesNoFile) {
  safe_save({{"w", weights(2, 32)}}, path("a.safetensors"));
  EXPECT_NE(refused("a.safetensors", "a.pt").find("ends in none of"), std::string::npos);
  EXPECT_NE(refused("a.safetensors", "b.safetensors", {.quantize = BlockFormat::Q8_0}).find("cannot hold blocks"), std::string::npos);
  EXPECT_NE(refused("a.safetensors", "a.gguf", {.quantize = BlockFormat::IQ1_S}).find("only Q8_0"), std::string::npos);
  EXPECT_NE(refused("a.safetensors", "a.gguf", {.quantize = BlockFormat::Q4_K}).find("a multiple of 256"), std::string::npos);
  safe_save({{"w", weights(2, 32) / 0}}, path("nan.safetensors"));
  EXPECT_NE(refused("nan.safetensors", "a.gguf", {.quantize = BlockFormat::Q8_0}).find("finite"), std::string::npos);
  const ConvertOptions stops{.progress = [](const TensorInfo&) { throw Cancelled("enough"); }};
  for (const char* to : {"b.safetensors", "b.gguf", "b.npz"}) EXPECT_EQ(refused<Cancelled>("a.safetensors", to, stops), "enough");
  EXPECT_THROW(convert("a.safetensors", "nowhere/a.npz"), IoError);
}

TEST_F(Convert, OntoItself) {
  safe_save({{"w", weights(2, 32)}}, path("a.safetensors"));
  convert("a.safetensors", "a.safetensors");
  EXPECT_EQ(bytes_of("a.safetensors", "w"), weights(2, 32).data());
}

}  // namespace
}  // namespace tinygrad
