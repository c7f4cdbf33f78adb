// Model files of any format, opened by their content.
#include <gtest/gtest.h>

#include <fstream>

#include <tinygrad/formats.h>
#include <tinygrad/tinygrad.h>

#include "base/archives.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "frontend/torch/checkpoints.h"
#include "support/message_of.h"
#include "support/refusal.h"

namespace tinygrad {
namespace {

using namespace std::string_literals;
using nn::state::safe_save;
using Floats = std::vector<float>;

/// Of a checkpoint: a dict with a vector of three elements over a storage.
std::string object_with(const std::string& storage) {
  return test::pickle::dict({test::pickle::text("w"), test::pickle::tensor(storage, 0, {3}, {1})});
}

class ModelFile : public TempDir {
 protected:
  void write(const std::string& name, const std::string& text) { std::ofstream(path(name), std::ios::binary) << text; }
  std::string refused(const std::string& name) {
    return test::message_of<FormatError>([&] { formats::open(path(name)); });
  }
  Tensor bytes_in(const std::string& name) {
    const std::string bytes = read_file(path(name));
    return Tensor(std::vector<uint8_t>(bytes.begin(), bytes.end()));
  }
};

TEST_F(ModelFile, Safetensors) {
  const std::vector<std::pair<std::string, Tensor>> tensors{{"w", Tensor({{1.0, 2.0}, {3.0, 4.0}})}, {"b", Tensor({7})}};
  safe_save(tensors, path("f"), {{"k", "v"}});
  const auto file = formats::open(path("f"));
  EXPECT_EQ(file->format(), "safetensors");
  ASSERT_EQ(file->tensors().size(), 2U);
  EXPECT_EQ(file->tensors()[0].name, "w");
  EXPECT_EQ(file->tensors()[0].type, "F32");
  EXPECT_EQ(file->tensors()[0].dtype, DType::float32);
  EXPECT_EQ(file->tensors()[0].shape, (Sizes{2, 2}));
  EXPECT_EQ(file->tensors()[0].bytes, 16);
  ASSERT_EQ(file->metadata().size(), 1U);
  EXPECT_EQ(std::get<std::string>(file->metadata()[0].second.value), "v");
  EXPECT_EQ(file->tensor(0).tolist(), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(file->tensor(1).dtype(), DType::int32);
  EXPECT_FALSE(file->quantized(0));
  EXPECT_THROW(file->quantized(2), IndexError);
  EXPECT_THROW(file->tensor(2), IndexError);
  EXPECT_EQ(formats::load(path("f")).at("b").item<int>(), 7);
}

TEST_F(ModelFile, SafetensorsOfTypesWithoutADtype) {
  const std::string header = R"({"scale":{"dtype":"F8_E8M0","shape":[3],"data_offsets":[0,3]},
    "packed":{"dtype":"F4","shape":[2,3],"data_offsets":[3,6]},"new":{"dtype":"F9","shape":[5],"data_offsets":[6,8]},
    "w":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
  write("f", test::little(uint64_t(header.size())) + header + std::string(8, 'x') + test::little(uint32_t{0x40000000}));
  const auto file = formats::open(path("f"));
  ASSERT_EQ(file->tensors().size(), 4U);
  EXPECT_EQ(file->tensors()[0].type, "F8_E8M0");
  EXPECT_FALSE(file->tensors()[0].dtype);
  EXPECT_EQ(file->tensors()[1].bytes, 3);
  for (const size_t i : {0U, 1U, 2U})
    EXPECT_NE(test::message_of<FormatError>([&] { file->tensor(i); }).find("which no dtype holds"), std::string::npos);
  EXPECT_EQ(file->tensor(3).tolist(), (Floats{2}));
  EXPECT_EQ(nn::state::safe_load_metadata(path("f")).tensors.at("packed").type, "F4");
  EXPECT_THROW(nn::state::safe_load(path("f")), FormatError);
  EXPECT_THROW(formats::load(path("f")), FormatError);
}

TEST_F(ModelFile, IndexOfSeveralFiles) {
  safe_save({{"a", Tensor({1.0})}, {"unlisted", Tensor({9.0})}}, path("model-00001-of-00002.safetensors"));
  safe_save({{"b", Tensor({2.0, 3.0})}}, path("model-00002-of-00002.safetensors"));
  write("model.safetensors.index.json", R"( {"metadata": {"total_size": 12}, "weight_map":
    {"b": "model-00002-of-00002.safetensors", "a": "model-00001-of-00002.safetensors"}})");
  const auto file = formats::open(path("model.safetensors.index.json"));
  ASSERT_EQ(file->tensors().size(), 2U);
  EXPECT_EQ(file->tensors()[0].name, "b");
  EXPECT_EQ(file->tensor(0).tolist(), (Floats{2, 3}));
  EXPECT_EQ(file->tensor(1).tolist(), (Floats{1}));
  EXPECT_EQ(std::get<std::string>(file->metadata()[0].second.value), "12");
  EXPECT_NE(test::message_of<FormatError>([&] { formats::open(bytes_in("model.safetensors.index.json")); }).find("by its path"),
            std::string::npos);
}

TEST_F(ModelFile, IndexesThatAreRefused) {
  safe_save({{"a", Tensor({1.0})}}, path("one.safetensors"));
  std::vector<std::pair<std::string, std::string>> bad{
      {"{", "at byte 1: no JSON object"},
      {"{}", "at byte 2: an index of safetensors has an object \"weight_map\""},
      {"{}x", "no JSON object"},
      {"{\"weight_map\": {}", "no JSON object"},
      {R"({"weight_map": []})", "an object \"weight_map\""},
      {R"({"weight_map": 1})", "an object \"weight_map\""},
      {R"({"weight_map": "a"})", "an object \"weight_map\""},
      {R"({"weight_map": {"a": 1}})", "at byte 23: the file of 'a' is no text"},
      {R"({"weight_map": {"a": null}})", "the file of 'a' is no text"},
      {R"({"weight_map": {"a": ["one.safetensors"]}})", "the file of 'a' is no text"},
      {R"({"weight_map": {"a": {}}})", "the file of 'a' is no text"},
      {R"({"weight_map": {"a": {"b": "one.safetensors"}}})", "the file of 'a' is no text"},
      {R"({"weight_map": {"a": "one.safetensors", "a": "one.safetensors"}})", "the name 'a' occurs twice"},
      {R"({"weight_map": {}, "weight_map": {}})", "the name 'weight_map' occurs twice"},
      {R"({"metadata": {"a": 1, "a": 2}, "weight_map": {}})", "the name 'a' occurs twice"},
      {R"({"weight_map": {"c": "one.safetensors"}})", "'c' is said to be in one.safetensors, which lacks it"},
      {"{\"weight_map\":" + std::string(100'000, '['), "an object \"weight_map\""},
      {R"({"metadata": {"a": )" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + R"(}, "weight_map": {}})",
       "more than 100 deep"},
      {"{\"weight_map\": {\"\xff\": \"a\"}}", "no JSON object"},
      {R"({"weight_map": {"\ud800": "a"}})", "no JSON object"},
  };
  for (const char* file : {"", ".", "..", "../one.safetensors", "./one.safetensors", "/etc/passwd", "a/../one.safetensors", "a\\\\b",
                           "a\\u0000", "\\u002e\\u002e/one.safetensors", "one.safetensors/", "\\u002fetc\\u002fpasswd"})
    bad.emplace_back(R"({"weight_map": {"a": ")" + std::string(file) + "\"}}", "'a' is said to be in");
  const std::string whole = R"({"metadata": {"a": 1}, "weight_map": {"a": "one.safetensors"}})";
  for (size_t end = 1; end < whole.size(); ++end) bad.emplace_back(whole.substr(0, end), "no JSON object");
  for (const auto& [index, part] : bad) {
    write("index.json", index);
    const std::string said = test::refusal_of([&] { formats::open(path("index.json")); });
    EXPECT_NE(said.find(part), std::string::npos) << said << "\n  expected: " << part;
    EXPECT_TRUE(said.starts_with(path("index.json"))) << said;
  }
  write("index.json", std::string(100'000, '[') + "{");
  EXPECT_NE(refused("index.json").find("no model file"), std::string::npos);
  write("index.json", R"({"weight_map": {"a": "none.safetensors"}})");
  EXPECT_THROW(formats::open(path("index.json")), IoError);
}

TEST_F(ModelFile, EveryFormatIsToldByItsContent) {
  const Tensor values({1.0, 2.0, 3.0});
  const std::string elements = test::pickle::bytes_of(Floats{1, 2, 3});
  safe_save({{"w", values}}, path("safetensors"));
  formats::gguf_save({{"w", values}}, path("gguf"));
  formats::npy_save(values, path("npy"));
  formats::npz_save({{"w", values}}, path("npz"));
  write("torch", test::pickle::archive(object_with(test::pickle::storage("FloatStorage", "0", 3)), {{"0", elements}}));
  write("torch-legacy", test::pickle::stream(object_with(test::pickle::stream_storage("FloatStorage", "0", 3)), {{"0", 3, elements}}));
  for (const char* format : {"safetensors", "gguf", "npy", "npz", "torch", "torch-legacy"}) {
    for (const auto& file : {formats::open(path(format)), formats::open(bytes_in(format))}) {
      EXPECT_EQ(file->format(), format);
      ASSERT_EQ(file->tensors().size(), 1U) << format;
      EXPECT_EQ(file->tensors()[0].name, format == "npy"s ? "arr_0" : "w");
      EXPECT_EQ(file->tensors()[0].dtype, file->tensor(0).dtype());
      EXPECT_EQ(file->tensor(0).tolist(), (Floats{1, 2, 3})) << format;
    }
  }
  formats::npz_save(nn::state::StateDict(), path("none"));
  EXPECT_EQ(formats::open(path("none"))->format(), "npz");
}

TEST_F(ModelFile, OtherFilesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> others{
      {"", "an empty file"},
      {"x", "no model file"},
      {"hello, world", "no model file"},
      {"\x7f"
       "ELF",
       "no model file"},
      {"\x89HDF\r\n\x1a\n" + std::string(100, '\0'), "HDF5"},
      {"\x1f\x8b\x08" + std::string(20, '\0'), "gzip"},
      {test::tar_of({{"storages", "x"}}), "before 0.1.12"},
      {"\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01K\x02"s + "e.", "a pickle, but not"},
      {"\x1c\x00\x00\x00TFL3"s, "TensorFlow Lite"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"},
      {test::zip_of({{"a/model.safetensors", "x"}}), "a zip archive of other files, as 'a/model.safetensors'"},
      {test::zip_of({{"a/constants.pkl", "x"}, {"a/version", "3"}}), "TorchScript"},
      {std::string(8, '\0'), "no model file"},
  };
  for (const auto& [bytes, part] : others) {
    write("f", bytes);
    EXPECT_NE(refused("f").find(part), std::string::npos) << part << ": " << refused("f");
    EXPECT_NE(refused("f").find(path("f")), std::string::npos);
  }
  EXPECT_THROW(formats::open(path("none")), IoError);
  EXPECT_THROW(formats::open(path("")), IoError);  // the folder
}

}  // namespace
}  // namespace tinygrad
