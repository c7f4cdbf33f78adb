// tg inspect and tg convert: what scripts may rely on.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include <tinygrad/formats.h>
#include <tinygrad/tinygrad.h>

#include "apps/support.h"

namespace tinygrad::test {
namespace {

using Json = nlohmann::json;

class TgModelFiles : public testing::Test {
 protected:
  void SetUp() override {
    nn::state::safe_save({{"w", Tensor::ones({4, 32})}, {"bias", Tensor::zeros({4})}}, path("a.safetensors"), {{"made\nby", "tests"}});
  }
  std::string path(const std::string& name) const { return folder_.path(name); }
  Ran inspect(const std::string& file) const { return run_tg("inspect --json " + path(file)); }

  const TempFolder folder_;
};

TEST_F(TgModelFiles, InspectJson) {
  const Ran ran = inspect("a.safetensors");
  ASSERT_EQ(ran.status, 0) << ran.err;
  ASSERT_EQ(ran.lines().size(), 1U);
  const Json r = Json::parse(ran.out);
  EXPECT_EQ(r["format"], "safetensors");
  EXPECT_EQ(r["metadata"], (Json{{"made\nby", "tests"}}));
  ASSERT_EQ(r["tensors"].size(), 2U);
  const Json& w = r["tensors"][1];
  EXPECT_EQ(w["name"], "w");
  EXPECT_EQ(w["type"], "F32");
  EXPECT_EQ(w["dtype"], "float32");
  EXPECT_EQ(w["shape"], Json::array({4, 32}));
  EXPECT_EQ(w["bytes"], 512);
  EXPECT_GT(w["offset"], 8);
}

TEST_F(TgModelFiles, InspectText) {
  const Ran ran = run_tg("inspect " + path("a.safetensors"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const char* part : {"format    safetensors\n", "tensors   2: 2 F32\n", "elements  132\n", "bytes     528\n", "  made\\nby = tests\n",
                           "name  type  shape         bytes\n", "w     F32   (4, 32)       512 B\n"})
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "is not in:\n" << ran.out;
}

TEST_F(TgModelFiles, InspectShowsWhatIsNotRead) {
  const std::string header = R"({"a\u001b[2J":{"dtype":"F8_E8M0","shape":[2],"data_offsets":[0,2]},)"
                             R"("huge":{"dtype":"\u001b[31m","shape":[9223372036854775807],"data_offsets":[2,2]},)"
                             R"("huge2":{"dtype":"X","shape":[9223372036854775807],"data_offsets":[2,2]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  file[1] = static_cast<char>(header.size() >> 8);
  folder_.write("f", file + header + "xx");
  const Ran ran = run_tg("inspect " + path("f"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("F8_E8M0 (not read)"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos) << "a file moves the cursor";
  EXPECT_EQ(Json::parse(inspect("f").out)["tensors"][0]["dtype"], Json());
}

TEST_F(TgModelFiles, Convert) {
  for (const char* to : {"b.gguf", "b.npz", "b.safetensors"}) {
    const Ran ran = run_tg("convert " + path("a.safetensors") + " " + path(to));
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, path(to) + ": 2 tensors, 528 B\n");
    EXPECT_NE(ran.err.find("2/2"), std::string::npos) << "the bar: " << ran.err;
    EXPECT_EQ(formats::load(path(to)).at("w").tolist(), std::vector<float>(128, 1));
  }
  EXPECT_EQ(Json::parse(inspect("b.gguf").out)["metadata"]["made\nby"], "tests");
}

TEST_F(TgModelFiles, ConvertQuantizes) {
  const Ran ran = run_tg("convert --quantize Q8_0 --json " + path("a.safetensors") + " " + path("b.gguf"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Json r = Json::parse(ran.out);
  EXPECT_EQ(r["from"], path("a.safetensors"));
  EXPECT_EQ(r["to"], path("b.gguf"));
  EXPECT_EQ(r["tensors"], 2);
  EXPECT_EQ(r["quantized"], 1);
  EXPECT_EQ(r["bytes"], 4 * 34 + 16);
  const Json tensors = Json::parse(inspect("b.gguf").out)["tensors"];
  EXPECT_EQ(tensors[1]["type"], "Q8_0");
  EXPECT_EQ(tensors[1]["dtype"], "float32");
}

TEST_F(TgModelFiles, MistakesLeaveNoFile) {
  const auto expect_error = [&](const std::string& arguments, int status, const std::string& part) {
    const Ran ran = run_tg(arguments);
    EXPECT_EQ(ran.out, "");
    if (status == 0)
      EXPECT_GT(ran.status, 1) << arguments;  // as CLI11 numbers usage errors
    else
      EXPECT_EQ(ran.status, status) << arguments;
    EXPECT_NE(ran.err.find(part), std::string::npos) << part << " is not in: " << ran.err;
  };
  const std::string a = path("a.safetensors") + " ";
  expect_error("inspect", 0, "FILE");
  expect_error("inspect " + path("none"), 1, "No such file");
  expect_error("inspect " + folder_.write("text", "hello"), 1, "no model file of a known format");
  expect_error("convert " + a, 0, "TO");
  expect_error("convert " + a + path("b.pt"), 0, "checkpoints of PyTorch are read, not written");
  expect_error("convert --quantize Q9 " + a + path("b.gguf"), 0, "Q4_K");
  expect_error("convert --quantize Q8_0 " + a + path("b.npz"), 1, "cannot hold blocks");
  expect_error("convert --quantize Q6_K " + a + path("b.gguf"), 1, "a multiple of 256");
  expect_error("convert " + a + path("none/b.gguf"), 1, "none/b.gguf");
  expect_error("convert " + path("none") + " " + path("b.gguf"), 1, "No such file");
  for (const auto& entry : std::filesystem::directory_iterator(path("")))
    EXPECT_TRUE(entry.path().filename() == "a.safetensors" || entry.path().filename() == "text") << entry.path();
}

}  // namespace
}  // namespace tinygrad::test
