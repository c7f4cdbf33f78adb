// The weights of an ONNX model as those of any model file, and what is said of its graph.
#include <gtest/gtest.h>

#include <tinygrad/errors.h>
#include <tinygrad/formats.h>
#include <tinygrad/onnx.h>

#include "frontend/onnx/model_file.h"
#include "support/message_of.h"
#include "support/temp_folder.h"

namespace tinygrad::onnx::test {
namespace {

using tinygrad::test::message_of;
using tinygrad::test::TempFolder;

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(OnnxReader, Weights) {
  const TempFolder folder;
  folder.write("w.bin", "xxxx" + floats({5, 6}));
  const GraphParts graph{
      .nodes = {node("Foo", {"x"}, {"y"}, {}, "com.acme")},
      .initializers = {tensor("a", {3, 2}, 1, floats({1, 2, 3, 4, 5, 6})), tensor("nibbles", {3}, 22, "\x2f\x01"),
                       external_tensor("outside", {2}, {{"location", "w.bin"}, {"offset", "4"}}), tensor("bits", {2}, 24, "\x7f\x80"),
                       number(1, 1) + number(2, 8) + message(8, "text") + message(6, "t")},
      .inputs = {value_info("x", {2})},
      .outputs = {value_info("y", {2})}};
  const auto file = formats::open(folder.write("m.onnx", model(graph)));
  EXPECT_EQ(file->format(), "onnx");
  const std::vector<formats::TensorInfo>& all = file->tensors();
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[0].type, "float32");
  EXPECT_EQ(all[0].shape, (Sizes{3, 2}));
  EXPECT_EQ(all[0].bytes, 24);
  EXPECT_GT(all[0].offset, 0);
  EXPECT_EQ(file->tensor(0).tolist(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(all[1].type, "int4");
  EXPECT_EQ(all[1].dtype, DType::int8);
  EXPECT_EQ(file->tensor(1).tolist<int>(), (std::vector<int>{-1, 2, 1}));
  EXPECT_EQ(file->tensor(2).tolist(), (std::vector<float>{5, 6}));
  for (const size_t place : {3, 4}) {
    EXPECT_FALSE(all[place].dtype);
    EXPECT_THROW(file->tensor(place), FormatError);
  }
  EXPECT_THROW(file->tensor(5), IndexError);
}

TEST(OnnxReader, WeightsThatAreListedAreThere) {
  const TempFolder folder;
  for (const std::string& bytes : {std::string(7, '\0'), std::string(9, '\0'), std::string()}) {
    const GraphParts graph{.initializers = {tensor("w", {2}, 1, bytes)}, .outputs = {value_info("w", {2})}};
    const std::string path = folder.write("m.onnx", model(graph));
    const std::string said = message_of<FormatError>([&] { formats::open(path); });
    EXPECT_NE(said.find("the tensor 'w', float32 (2) has " + std::to_string(bytes.size()) + " bytes, expected 8"), std::string::npos)
        << said;
  }
  const std::string both = external_tensor("w", {4}, {{"location", "none.bin"}}) + message(9, "12345678");
  const GraphParts graph{.initializers = {both}, .outputs = {value_info("w", {4})}};
  EXPECT_EQ(formats::open(folder.write("m.onnx", model(graph)))->tensors()[0].offset, -1);
}

TEST(OnnxReader, ExternalDataIsReadWhenItIsAskedFor) {
  const TempFolder folder;
  const GraphParts graph{.initializers = {external_tensor("w", {2}, {{"location", "none.bin"}})}, .outputs = {value_info("w", {2})}};
  const std::string path = folder.write("m.onnx", model(graph));
  const auto file = formats::open(path);
  EXPECT_EQ(file->tensors()[0].bytes, 8);
  EXPECT_THROW(file->tensor(0), IoError);
  EXPECT_TRUE(describe(path).unsupported.empty());
}

TEST(OnnxReader, Converted) {
  const TempFolder folder;
  const GraphParts graph{.initializers = {tensor("w", {2}, 1, floats({1, 2}))}, .outputs = {value_info("w", {2})}};
  const auto file = formats::open(folder.write("m.onnx", model(graph)));
  formats::convert(*file, folder.path("w.safetensors"));
  EXPECT_EQ(formats::load(folder.path("w.safetensors")).at("w").tolist(), (std::vector<float>{1, 2}));
}

TEST(OnnxDescribe, OperatorsAndWhatIsMissing) {
  const TempFolder folder;
  const GraphParts graph{.nodes = {node("Relu", {"x"}, {"a"}), node("Relu", {"a"}, {"b"}), node("Foo", {"b"}, {"y"}, {}, "com.acme")},
                         .inputs = {value_info("x", {2})},
                         .outputs = {value_info("y", {2})}};
  const Description d = describe(folder.write("m.onnx", model(graph)));
  EXPECT_EQ(d.operators, (std::map<std::string, int64_t>{{"Relu", 2}, {"com.acme.Foo", 1}}));
  ASSERT_EQ(d.unsupported.size(), 1U);
  EXPECT_EQ(d.unsupported[0].name, "Foo");
  EXPECT_EQ(d.unsupported[0].nodes, (std::vector<std::string>{"y"}));
  ASSERT_EQ(d.inputs.size(), 1U);
  EXPECT_EQ(d.inputs[0].type, "float32 (2)");
  EXPECT_THROW(load(folder.path("m.onnx")), UnsupportedError);
}

TEST(OnnxDescribe, BoundsOfIndices) {
  const TempFolder folder;
  const GraphParts graph{
      .nodes = {node("Gather", {"table", "i"}, {"a"}), node("Unsqueeze", {"j", "axes"}, {"j1"}),
                node("Gather", {"table", "j1"}, {"b"}, {integer_attribute("axis", 1)})},
      .initializers = {tensor("table", {3, 2}, 1, floats({1, 2, 3, 4, 5, 6})), tensor("axes", {1}, 7, std::string(8, '\0'))},
      .inputs = {value_info("i", {2}, 7), value_info("j", {2}, 7), value_info("k", {2}, 7)},
      .outputs = {value_info("a", {2, 2})}};
  const Description d = describe(folder.write("m.onnx", model(graph)));
  ASSERT_EQ(d.inputs.size(), 3U);
  EXPECT_EQ(d.inputs[0].index_bound, 3);
  EXPECT_EQ(d.inputs[1].index_bound, 2);
  EXPECT_EQ(d.inputs[2].index_bound, -1);
}

TEST(OnnxImageDecoder, DecodesWhatItIsGiven) {
  const TempFolder folder;
  const auto decoder = [&](std::string_view format) {
    const GraphParts graph{.nodes = {node("ImageDecoder", {"x"}, {"y"}, {message(1, "pixel_format") + message(4, format) + number(20, 3)})},
                           .inputs = {value_info("x", {-1}, 2)},
                           .outputs = {value_info("y", {-1, -1, -1}, 2)}};
    return load(folder.write("m.onnx", model(graph)));
  };
  const auto bytes = [](std::string_view file) { return Tensor(std::vector<uint8_t>(file.begin(), file.end())); };
  const Model bgr = decoder("BGR");
  for (int call = 0; call < 4; ++call) {  // walked, captured, replayed; and bytes of the same number that say something else
    const bool is_other = call == 3;
    const Tensor out = bgr.run({{"x", bytes(is_other ? "P6 1 1 255 ddd" : "P6 1 1 255 abc")}}).at("y").tensor();
    EXPECT_EQ(out.shape(), (Sizes{1, 1, 3}));
    EXPECT_EQ(out.tolist<int>(), is_other ? (std::vector<int>{100, 100, 100}) : (std::vector<int>{99, 98, 97})) << call;
  }
  EXPECT_THROW(bgr.run({{"x", bytes("no picture")}}), FormatError);
  EXPECT_NE(message_of<ValueError>([&] { decoder("CMYK").run({{"x", bytes("P6 1 1 255 abc")}}); }).find("expects RGB, BGR or Grayscale"),
            std::string::npos);
}

}  // namespace
}  // namespace tinygrad::onnx::test
