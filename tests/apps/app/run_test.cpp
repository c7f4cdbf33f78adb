// tg run and tg inspect of ONNX models: what scripts may rely on, and what is said to mistakes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <tinygrad/formats.h>
#include <tinygrad/media.h>
#include <tinygrad/tinygrad.h>

#include "apps/support.h"
#include "frontend/media_files.h"
#include "frontend/onnx/model_file.h"
#include "frontend/torch_export/archive_file.h"

namespace tinygrad::test {
namespace {

using namespace onnx::test;
using Json = nlohmann::json;

constexpr int64_t float_type = 1, byte_type = 2, int64_type = 7, bool_type = 9;

/// With a size that has a name.
std::string open_info(std::string_view name, std::string_view size, const std::vector<int64_t>& others, int64_t type = float_type) {
  std::string dims = message(1, message(2, size));
  for (const int64_t s : others) dims += message(1, number(1, s));
  return message(1, name) + message(2, message(1, number(1, type) + message(2, dims)));
}
template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class TgRun : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string model(const std::string& name, const GraphParts& graph) const { return folder_.write(name, onnx::test::model(graph)); }
  /// y = x + w, of rows of two.
  std::string sum() const {
    return model("sum.onnx", {.nodes = {node("Add", {"x", "w"}, {"y"})},
                              .initializers = {tensor("w", {2}, float_type, raw<float>({10, 20}))},
                              .inputs = {open_info("x", "rows", {2})},
                              .outputs = {open_info("y", "rows", {2})}});
  }
  std::string identity(const std::string& info) const {
    return model("same.onnx", {.nodes = {node("Identity", {"x"}, {"y"})}, .inputs = {info}, .outputs = {message(1, "y")}});
  }
  Json run(const std::string& arguments) const {
    const Ran ran = run_tg("run --json --output " + path("out.npz") + " " + arguments);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.lines().size(), 1U) << ran.out;
    return Json::parse(ran.out, nullptr, false);
  }
  Tensor result(const std::string& name = "y") const { return formats::load(path("out.npz")).at(name); }
  void expect_error(const std::string& arguments, const std::vector<std::string>& parts) const {
    const Ran ran = run_tg("run " + arguments);
    EXPECT_EQ(ran.status, 1) << arguments;
    EXPECT_EQ(ran.out, "") << arguments;
    for (const std::string& part : parts) EXPECT_NE(ran.err.find(part), std::string::npos) << part << " is not in: " << ran.err;
  }

  const TempFolder folder_;
};

TEST_F(TgRun, Json) {
  const Json r = run(sum() + " --input random --repeat 3 --size rows=4");
  EXPECT_EQ(r["inputs"][0]["name"], "x");
  EXPECT_EQ(r["inputs"][0]["shape"], (Json{4, 2}));
  EXPECT_EQ(r["inputs"][0]["dtype"], "float32");
  EXPECT_EQ(r["outputs"], (Json{{{"name", "y"}, {"shape", {4, 2}}, {"dtype", "float32"}, {"type", "float32"}}}));
  EXPECT_EQ(r["repeat"], 3);
  EXPECT_EQ(r["kernels"], 1);
  for (const char* key : {"first_call_s", "steady_ms", "gflops", "peak_mb", "load_s"}) EXPECT_GT(r[key], 0) << key;
  EXPECT_EQ(result().shape(), (Sizes{4, 2}));
}

TEST_F(TgRun, IndicesAreChecked) {
  const std::string rows = model("rows.onnx", {.nodes = {node("Gather", {"w", "x"}, {"y"})},
                                               .initializers = {tensor("w", {3}, float_type, raw<float>({10, 20, 30}))},
                                               .inputs = {value_info("x", {2}, int64_type)},
                                               .outputs = {value_info("y", {2})}});
  run(rows + " --input x=2,-1");
  EXPECT_EQ(result().tolist<float>(), (std::vector<float>{30, 30}));
  expect_error(rows + " --input x=1,3", {"'x' selects rows of 3", "1 to 3"});
  expect_error(rows + " --input x=-4,0", {"'x' selects rows of 3", "-4 to 0"});
}

TEST_F(TgRun, ProgramsOfTorchExport) {
  const std::string file = folder_.write("net.pt2", pt2::archive());
  const Json r = run(file + " --input random --repeat 3");
  EXPECT_EQ(r["format"], "torch.export");
  EXPECT_EQ(r["inputs"][0]["shape"], (Json{2, 2})) << "the least that was exported";
  EXPECT_EQ(r["outputs"], (Json{{{"name", "output"}, {"shape", {2, 2}}, {"dtype", "float32"}, {"type", "float32"}}}));
  run(file + " --input x=3 --size s0=5 --repeat 0");
  EXPECT_EQ(result("output").tolist<float>(), (std::vector<float>{4, 5, 4, 5, 4, 5, 4, 5, 4, 5}));
  expect_error(file + " --input x=3 --size s0=10", {"the size s0 is 10", "2 to 9"});
  expect_error(file + " --input x=3 --size s0=3 --size s0=4", {"'s0' is given twice"});
  // Results are those of the first call, though each call writes into its input.
  run(folder_.write("writes.pt2", pt2::archive(pt2::program({{"aten.add.Tensor", "aten.add_.Tensor"}}))) + " --input x=3 --repeat 4");
  EXPECT_EQ(result("output").tolist<float>(), (std::vector<float>{4, 5, 4, 5}));
  expect_error(folder_.write("odd.pt2", pt2::archive(pt2::program({{"aten.add.Tensor", "aten.odd.Tensor"}}))) + " --input random",
               {"not supported", "aten.odd.Tensor"});

  const Ran ran = run_tg("inspect --json " + file);
  const Json listed = Json::parse(ran.out, nullptr, false);
  EXPECT_EQ(listed["format"], "torch.export");
  EXPECT_EQ(listed["inputs"], (Json{{{"name", "x"}, {"type", "float32 (s0, 2)"}}}));
  EXPECT_EQ(listed["operators"], (Json{{"aten.add.Tensor", 1}}));
  EXPECT_EQ(listed["unsupported"], Json::array());
  EXPECT_EQ(listed["tensors"][0]["name"], "w");
  EXPECT_NE(run_tg("inspect " + path("odd.pt2")).out.find("aten.odd.Tensor  (not supported)"), std::string::npos);
}

TEST_F(TgRun, RandomInputsFollowFromTheSeed) {
  const auto values = [&](const std::string& arguments) {
    run(sum() + " --input random --repeat 0 --save-inputs " + path("in.npz") + arguments);
    const Tensor x = formats::load(path("in.npz")).at("x");
    EXPECT_EQ((x + Tensor({10.0F, 20.0F})).tolist(), result().tolist());
    return x.tolist();
  };
  const std::vector<float> first = values("");
  EXPECT_EQ(first.size(), 2U);  // sizes that nothing says are 1
  EXPECT_EQ(values(" --seed 0"), first);
  EXPECT_NE(values(" --seed 1"), first);
}

TEST_F(TgRun, RandomInputsSuitTheirTypes) {
  const std::string file = model(
      "m.onnx",
      {.nodes = {node("Gather", {"table", "ids"}, {"a"}), node("Identity", {"attention_mask"}, {"b"}), node("Identity", {"flags"}, {"c"})},
       .initializers = {tensor("table", {3, 1}, float_type, raw<float>({0, 1, 2}))},
       .inputs = {open_info("ids", "n", {50}, int64_type), open_info("attention_mask", "n", {50}, int64_type),
                  value_info("flags", {50}, bool_type)},
       .outputs = {message(1, "a"), message(1, "b"), message(1, "c")}});
  run(file + " --input random --size n=2 --repeat 0");
  std::vector<float> values = result("a").tolist();
  std::ranges::sort(values);
  EXPECT_EQ(values.front(), 0);
  EXPECT_EQ(values.back(), 2);  // all rows of the table, and no others
  EXPECT_EQ(result("b").tolist<int>(), std::vector<int>(100, 1));
  EXPECT_EQ(result("c").dtype(), DType::bool_);
}

TEST_F(TgRun, Arrays) {
  const Tensor x({{1.0F, 2.0F}, {3.0F, 4.0F}});
  formats::npy_save(x, path("x.npy"));
  formats::npz_save({{"other", Tensor({1.0F})}, {"x", x}}, path("x.npz"));
  formats::npz_save({{"other", x}, {"third", x}}, path("z.npz"));
  for (const std::string& source : {"x=" + path("x.npy"), path("x.npy"), "x=" + path("x.npz"), "x=" + path("z.npz") + ":other"}) {
    run(sum() + " --input " + source);
    EXPECT_EQ(result().tolist(), (std::vector<float>{11, 22, 13, 24})) << source;
  }
  run(sum() + " --input 5");
  EXPECT_EQ(result().tolist(), (std::vector<float>{15, 25}));
  run(sum() + " --input x=1,-2");
  EXPECT_EQ(result().tolist(), (std::vector<float>{11, 18}));
}

TEST_F(TgRun, ArraysSayTheSizesOfOthers) {
  const std::string file = model("m.onnx", {.nodes = {node("Add", {"x", "z"}, {"y"})},
                                            .inputs = {open_info("x", "n", {2}), open_info("z", "n", {2})},
                                            .outputs = {open_info("y", "n", {2})}});
  formats::npy_save(Tensor::zeros({3, 2}), path("z.npy"));
  EXPECT_EQ(run(file + " --input random --input z=" + path("z.npy"))["inputs"][0]["shape"], (Json{3, 2}));
}

TEST_F(TgRun, Pictures) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 4 * 8; ++i) pixels.insert(pixels.end(), {100, 150, uint8_t(i % 8 < 2 || i % 8 > 5 ? 0 : 200)});
  media::save_image(Tensor(pixels, {4, 8, 3}), path("a.png"));  // blue in the middle
  const std::string picture = " --input x=" + path("a.png");

  run(identity(value_info("x", {1, 3, 2, 2})) + picture);  // the middle, as ImageNet's networks want it
  ASSERT_EQ(result().shape(), (Sizes{1, 3, 2, 2}));
  const std::vector<float> usual = result().tolist();
  for (size_t c = 0; c < 3; ++c) {
    const std::vector<float> byte{100, 150, 200}, mean{0.485F, 0.456F, 0.406F}, std{0.229F, 0.224F, 0.225F};
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(usual[c * 4 + i], (byte[c] / 255 - mean[c]) / std[c], 1e-5);
  }
  run(identity(value_info("x", {1, 3, 1, 1})) + picture + " --fit stretch --scale 1 --mean 10,0,0 --bgr");
  const std::vector<float> stretched = result().tolist();  // what is near the middle counts more
  EXPECT_NEAR(stretched[0], 200 * 3.5 / 6 - 10, 1e-3);
  EXPECT_NEAR(stretched[1], 150, 1e-3);
  EXPECT_NEAR(stretched[2], 100, 1e-3);
  run(identity(value_info("x", {2, 2, 3}, byte_type)) + picture);
  EXPECT_EQ(result().tolist<int>(), (std::vector<int>{100, 150, 200, 100, 150, 200, 100, 150, 200, 100, 150, 200}));
  const Json r = run(identity(value_info("x", {-1, -1, -1, 1})) + picture);  // grey, its own size
  EXPECT_EQ(r["outputs"][0]["shape"], (Json{1, 4, 8, 1}));
  EXPECT_NEAR(result().tolist()[0], (0.299 * 100 + 0.587 * 150) / 255, 0.004);
}

TEST_F(TgRun, Sounds) {
  folder_.write("a.wav", wav_of(2, 8000, {0, 16384, 16384, 16384}));
  const Json r = run(identity(value_info("x", {1, 3})) + " --input " + path("a.wav"));
  EXPECT_EQ(result().tolist(), (std::vector<float>{0.25, 0.5, 0}));
  EXPECT_NE(r["inputs"][0]["from"].get<std::string>().find("8000 Hz, their mean, zeros up to 3"), std::string::npos) << r;
}

TEST_F(TgRun, TextNamesClasses) {
  folder_.write("labels", "cat\ndog\n");
  const Ran ran = run_tg("run " + sum() + " --input 0 --labels " + path("labels"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const char* part :
       {"inputs\n  x  float32 (1, 2)\n    0\n", "outputs\n  y  float32 (1, 2)\n    100.00 %     1  dog\n      0.00 %     0  cat\n",
        "kernels   1\n", "first  ", "steady  ", "GFLOP/s", "memory  "})
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "is not in:\n" << ran.out;
  const Ran values = run_tg("run " + sum() + " --input 0 --repeat 0");
  EXPECT_NE(values.out.find("  y  float32 (1, 2)\n    10, 20\n"), std::string::npos) << values.out;
  EXPECT_EQ(values.out.find("steady"), std::string::npos) << values.out;
}

TEST_F(TgRun, Mistakes) {
  const std::string file = sum() + " ";
  expect_error(file, {"1 input is not given", "--input random", "x  float32 (rows, 2)"});
  expect_error(file + "--input q=random", {"no input 'q'", "x  float32 (rows, 2)"});
  expect_error(file + "--input x=random --input x=1", {"'x' is given twice"});
  expect_error(file + "--input random --size cols=3", {"no size 'cols'", "rows"});
  expect_error(file + "--input random --size rows=many", {"NAME=NUMBER"});
  expect_error(file + "--input x=random:2,3", {"'x' is float32 (rows, 2)", "(2, 3)"});
  expect_error(file + "--input x=" + path("none.npy"), {"none.npy", "No such file"});
  expect_error(path("none.onnx") + " --input random", {"none.onnx", "No such file"});
  formats::npy_save(Tensor::zeros({1, 2}, {.dtype = DType::float64}), path("double.npy"));
  expect_error(file + "--input x=" + path("double.npy"), {"'x' is float32", "double.npy is float64", ".astype(\"float32\")"});
  formats::npz_save({{"a", Tensor({1.0F})}, {"b", Tensor({1.0F})}}, path("ab.npz"));
  expect_error(file + "--input x=" + path("ab.npz"), {"has no 'x'", "a, b"});
  expect_error(identity(value_info("x", {2}, int64_type)) + " --input 1.5", {"does not hold 1.5"});
  expect_error(identity(value_info("x", {2}, byte_type)) + " --input 256", {"does not hold 256"});
  media::save_image(Tensor::zeros({2, 2, 3}, {.dtype = DType::uint8}), path("a.png"));
  expect_error(identity(value_info("x", {1, 5, 2, 2})) + " --input " + path("a.png"), {"no picture", "channels"});
  expect_error(identity(value_info("x", {1, 3, 2, 2})) + " --mean 1,2 --input " + path("a.png"), {"--mean has 2 numbers"});
  nn::state::safe_save({{"w", Tensor({1.0F})}}, path("w.safetensors"));
  expect_error(path("w.safetensors") + " --input random", {"no graph", "torch.onnx.export", "tg inspect"});
  folder_.write("labels", "a\nb\nc\n");
  expect_error(file + "--input 0 --labels " + path("labels"), {"3 labels for the 2 classes"});
  expect_error(file + "--input 0 --labels " + path("none"), {"none", "No such file"});
  expect_error(file + "--input 0 --output " + path("none/a.npz"), {"none/a.npz"});
  EXPECT_GT(run_tg("run " + file + "--input 0 --output a.txt").status, 1);
  EXPECT_FALSE(std::filesystem::exists(path("out.npz")));
}

TEST_F(TgRun, UnsupportedOperatorsAreListedWhole) {
  const std::string file =
      model("bad.onnx",
            {.nodes = {node("Foo", {"x"}, {"a"}, {}, "com.acme"), node("Relu", {"a"}, {"b"}), node("Bar", {"b"}, {"y"}, {}, "com.acme")},
             .inputs = {value_info("x", {2})},
             .outputs = {value_info("y", {2})}});
  expect_error(file + " --input random", {"2 operators are not supported", "\n  Foo (com.acme", "\n  Bar (com.acme"});
  const Ran text = run_tg("inspect " + file);
  for (const char* part : {"format    onnx\n", "inputs\n  x  float32 (2)\n", "1 Relu\n", "1 com.acme.Foo  (not supported)\n"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "is not in:\n" << text.out;
  const Json r = Json::parse(run_tg("inspect --json " + file).out);
  EXPECT_EQ(r["format"], "onnx");
  EXPECT_EQ(r["operators"], (Json{{"Relu", 1}, {"com.acme.Bar", 1}, {"com.acme.Foo", 1}}));
  EXPECT_EQ(r["unsupported"].size(), 2U);
  EXPECT_EQ(r["tensors"], Json::array());
}

TEST_F(TgRun, InspectAndConvertWeights) {
  const Json r = Json::parse(run_tg("inspect --json " + sum()).out);
  EXPECT_EQ(r["tensors"][0]["name"], "w");
  EXPECT_EQ(r["tensors"][0]["bytes"], 8);
  EXPECT_EQ(r["unsupported"], Json::array());
  EXPECT_EQ(r["inputs"], (Json{{{"name", "x"}, {"type", "float32 (rows, 2)"}}}));
  const Ran ran = run_tg("convert " + sum() + " " + path("w.safetensors"));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(formats::load(path("w.safetensors")).at("w").tolist(), (std::vector<float>{10, 20}));
}

}  // namespace
}  // namespace tinygrad::test
