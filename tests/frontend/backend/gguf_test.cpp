// GGUF files that are saved and loaded.
#include <gtest/gtest.h>

#include <filesystem>

#include <tinygrad/counters.h>
#include <tinygrad/tinygrad.h>

#include "base/file.h"
#include "base/temp_dir.h"
#include "frontend/gguf/gguf.h"
#include "frontend/gguf/gguf_file.h"
#include "frontend/quantized/block_elements.h"
#include "support/message_of.h"

namespace tinygrad {
namespace {

using namespace formats;
using frontend::open_gguf;
using nn::state::gguf_load;
using nn::state::StateDict;
using test::GgufBytes;

class Gguf : public TempDir {
 protected:
  std::mt19937_64 random_{5};
};

constexpr DType plain[] = {DType::float32, DType::float16, DType::bfloat16, DType::float64,
                           DType::int8,    DType::int16,   DType::int32,    DType::int64};

TEST_F(Gguf, EveryTypeComesBackBitByBit) {
  std::vector<NamedTensor> out;
  for (const DType d : plain) {
    std::vector<std::byte> bytes(6 * itemsize(d));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(37 * i + 200);
    out.push_back({std::string(repr(d)), Tensor(bytes, d, {2, 3})});
  }
  out.push_back({"scalar", Tensor(2.5)});
  out.push_back({"empty", Tensor::zeros({0, 4})});
  out.push_back({"lazy", Tensor({1.0, 2.0}) * 2});
  out.push_back({"view", Tensor::arange(6).reshape({2, 3}).permute({1, 0})});
  for (const BlockFormat format : test::every_block_format()) {
    const BlockLayout& layout = layout_of(format);
    const std::vector<uint8_t> bytes = test::random_blocks(format, 6, random_);
    out.push_back({std::string(layout.name), QuantizedTensor{format, {2, 1, 3 * layout.elements}, Tensor(bytes, {2, 1, 3, layout.bytes})}});
  }
  gguf_save(out, path("f"), {{"general.architecture", {std::string("llama")}}, {"llama.block_count", {uint64_t{12}}}});
  const auto file = open_gguf(path("f"));
  EXPECT_EQ(file->format(), "gguf");
  ASSERT_EQ(file->metadata().size(), 2U);
  EXPECT_EQ(std::get<std::string>(file->metadata()[0].second.value), "llama");
  ASSERT_EQ(file->tensors().size(), out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const TensorInfo& info = file->tensors()[i];
    EXPECT_EQ(info.name, out[i].name);
    EXPECT_EQ(info.offset % 32, 0);
    if (const auto* q = std::get_if<QuantizedTensor>(&out[i].value)) {
      EXPECT_EQ(info.type, out[i].name);
      EXPECT_EQ(info.shape, q->shape);
      EXPECT_EQ(info.bytes, q->blocks.numel());
      const auto there = file->quantized(i);
      ASSERT_TRUE(there);
      EXPECT_EQ(there->format, q->format);
      EXPECT_EQ(there->blocks.data(), q->blocks.data());
      EXPECT_EQ(file->tensor(i).data(), q->dequantize().data()) << info.name;
    } else {
      const Tensor& t = std::get<Tensor>(out[i].value);
      EXPECT_EQ(info.shape, t.ndim() == 0 ? Sizes{1} : t.shape());
      EXPECT_FALSE(file->quantized(i));
      EXPECT_EQ(file->tensor(i).dtype(), t.dtype());
      EXPECT_EQ(file->tensor(i).data(), t.data()) << info.name;
    }
  }
  EXPECT_THROW(file->tensor(out.size()), IndexError);
  EXPECT_THROW(file->quantized(out.size()), IndexError);
  const auto [metadata, tensors] = gguf_load(path("f"));
  EXPECT_EQ(std::get<uint64_t>(metadata[1].second.value), 12U);
  EXPECT_EQ(tensors.at("view").tolist(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(tensors.at("Q6_K").shape(), (Sizes{2, 1, 768}));
  const std::string bytes = read_file(path("f"));
  EXPECT_EQ(gguf_load(Tensor(std::vector<uint8_t>(bytes.begin(), bytes.end()))).second.size(), out.size());
}

TEST_F(Gguf, LoadingComputesNothing) {
  const std::vector<uint8_t> bytes = test::random_blocks(BlockFormat::IQ1_S, 4, random_);
  gguf_save(std::vector<NamedTensor>{{"q", QuantizedTensor{BlockFormat::IQ1_S, {4, 256}, Tensor(bytes, {4, 1, 50})}}}, path("f"));
  GlobalCounters::reset();
  const Tensor q = gguf_load(path("f")).second.at("q");
  EXPECT_EQ(GlobalCounters::kernel_count, 0U);
  EXPECT_EQ(q.tolist(), test::elements_of(BlockFormat::IQ1_S, bytes));
}

TEST_F(Gguf, TensorsOutliveTheirFile) {
  gguf_save({{"a", Tensor({1.0, 2.0})}}, path("f"));
  const std::string before = read_file(path("f"));
  Tensor a = gguf_load(path("f")).second.at("a");
  a.assign(Tensor({3.0, 4.0})).realize();
  EXPECT_EQ(read_file(path("f")), before);
  gguf_save({{"a", a}, {"b", gguf_load(path("f")).second.at("a")}}, path("f"));
  EXPECT_EQ(gguf_load(path("f")).second.at("a").tolist(), (std::vector<float>{3, 4}));
  EXPECT_EQ(gguf_load(path("f")).second.at("b").tolist(), (std::vector<float>{1, 2}));
  a = gguf_load(path("f")).second.at("a");
  std::filesystem::remove(path("f"));
  EXPECT_EQ(a.tolist(), (std::vector<float>{3, 4}));
}

TEST_F(Gguf, AnyAlignmentIsRead) {
  for (const uint64_t alignment : {1, 2, 8, 4096}) {
    gguf_save({{"a", Tensor({1.5, -2.5})}, {"b", Tensor({4.0})}}, path("f"), {{"general.alignment", {alignment}}});
    const auto file = open_gguf(path("f"));
    EXPECT_EQ(file->tensors()[1].offset % int64_t(alignment), 0);
    EXPECT_EQ(file->tensor(0).tolist(), (std::vector<float>{1.5, -2.5}));
    EXPECT_EQ(file->tensor(1).tolist(), (std::vector<float>{4}));
  }
}

TEST_F(Gguf, WhatCannotBeSavedLeavesNoFile) {
  EXPECT_THROW(gguf_save({{"a", Tensor({1}).cast(DType::uint8)}}, path("f")), DTypeError);
  EXPECT_THROW(gguf_save({{"a", Tensor({1.0})}}, path("f"), {{"k", {}}}), ValueError);
  EXPECT_THROW(gguf_save({{"a", Tensor()}}, path("f")), ValueError);
  EXPECT_THROW(gguf_save(std::vector<NamedTensor>{{"q", QuantizedTensor{BlockFormat::Q8_0, {64}, Tensor({1.0})}}}, path("f")), ShapeError);
  EXPECT_THROW(gguf_save({{"a", Tensor({1.0})}}, path("absent/f")), IoError);
  EXPECT_TRUE(std::filesystem::is_empty(path("")));
  EXPECT_THROW(open_gguf(path("f")), IoError);
}

/// Files of a model that is split, which each may lie about.
class SplitGguf : public Gguf {
 protected:
  std::string part(uint64_t number, uint64_t count = 3) {
    const auto digits = [](uint64_t n) { return std::string(5 - std::to_string(n).size(), '0') + std::to_string(n); };
    return path("m-" + digits(number + 1) + "-of-" + digits(count) + ".gguf");
  }
  void save(uint64_t number, const std::string& tensor, uint64_t said_number, uint64_t said_count = 3, int64_t tensors = 3) {
    gguf_save({{tensor, Tensor({double(number)})}}, part(number),
              {{"general.name", {std::string(1, char('a' + number))}},
               {"split.no", {said_number}},
               {"split.count", {said_count}},
               {"split.tensors.count", {tensors}}});
  }
  void save_all() {
    save(0, "x", 0);
    save(1, "y", 1);
    save(2, "z", 2);
  }
  std::string error_of(const std::string& file) {
    return test::message_of<FormatError>([&] { open_gguf(file); });
  }
};

TEST_F(SplitGguf, TheFirstOpensAll) {
  save_all();
  const auto file = open_gguf(part(0));
  ASSERT_EQ(file->tensors().size(), 3U);
  EXPECT_EQ(file->tensors()[2].name, "z");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(file->tensor(i).tolist(), (std::vector<float>{float(i)}));
  EXPECT_EQ(std::get<std::string>(file->metadata()[0].second.value), "a");
  EXPECT_EQ(gguf_load(part(0)).second.size(), 3U);
}

TEST_F(SplitGguf, FilesThatDoNotBelongTogether) {
  save_all();
  EXPECT_NE(error_of(part(1)).find("it is file 2 of 3; open the first, whose name ends in -00001-of-00003.gguf"), std::string::npos);
  save(1, "y", 2);
  EXPECT_NE(error_of(part(0)).find("it says that it is file 3 of 3, by its name it is 2 of 3"), std::string::npos);
  save(1, "y", 1, 4);
  EXPECT_NE(error_of(part(0)).find("it says that it is file 2 of 4"), std::string::npos);
  save(1, "x", 1);
  EXPECT_NE(error_of(part(0)).find("tensor 'x' is in two of the files"), std::string::npos);
  save(1, "y", 1);
  save(0, "x", 0, 3, 4);
  EXPECT_NE(error_of(part(0)).find("'split.tensors.count' is 4, the 3 files have 3"), std::string::npos);
  save(0, "x", 3);
  EXPECT_NE(error_of(part(0)).find("'split.no' and 'split.count' are 3 of 3"), std::string::npos);
  save(0, "x", 0, uint64_t{1} << 60);
  EXPECT_NE(error_of(part(0)).find("'split.count'"), std::string::npos);
  save(0, "x", 0, 2);
  EXPECT_NE(error_of(part(0)).find("its name should end in -00001-of-00002.gguf"), std::string::npos);
  gguf_save(StateDict{}, path("s"), {{"split.count", {std::string("3")}}});
  EXPECT_NE(error_of(path("s")).find("'split.count' is no number"), std::string::npos);
  gguf_save(StateDict{}, path("s"), {{"split.count", {uint64_t{1}}}, {"split.no", {uint64_t{0}}}});
  EXPECT_TRUE(open_gguf(path("s"))->tensors().empty());
  save_all();
  std::filesystem::remove(part(2));
  EXPECT_NE(test::message_of<IoError>([&] { open_gguf(part(0)); }).find("m-00003-of-00003.gguf"), std::string::npos);
  const std::string first = read_file(part(0));
  EXPECT_THROW(gguf_load(Tensor(std::vector<uint8_t>(first.begin(), first.end()))), FormatError) << "bytes have no neighbours";
}

}  // namespace
}  // namespace tinygrad
