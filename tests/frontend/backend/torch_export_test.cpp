// Programs of torch.export: what is right runs, what is wrong is an error that names the field.
#include <gtest/gtest.h>

#include <tinygrad/formats.h>
#include <tinygrad/tinygrad.h>
#include <tinygrad/torch_export.h>

#include "frontend/torch_export/archive_file.h"
#include "support/refusal.h"

namespace tinygrad {
namespace {

using namespace test::pt2;

Tensor bytes(const std::string& text) { return Tensor(std::vector<uint8_t>(text.begin(), text.end()), {.device = "CPU"}); }
torch_export::Program load(const std::string& archive) { return torch_export::load(bytes(archive)); }

void expect_error(const std::string& archive, const std::string& part) {
  const std::string said = test::refusal_of([&] { load(archive); });
  EXPECT_NE(said.find(part), std::string::npos) << said;
}
void expect_refused(const Replacements& replaced, const std::string& part) { expect_error(archive(program(replaced)), part); }

TEST(TorchExport, RunsAProgram) {
  for (const bool deflate : {false, true}) {
    const torch_export::Program program = load(archive(test::pt2::program(), {}, deflate));
    ASSERT_EQ(program.inputs().size(), 1u);
    EXPECT_EQ(program.inputs()[0].name, "x");
    EXPECT_EQ(program.inputs()[0].type, "float32 (s0, 2)");
    EXPECT_EQ(program.inputs()[0].shape[0].symbol, "s0");
    EXPECT_EQ(program.inputs()[0].shape[1].number, 2);
    EXPECT_EQ(program.outputs()[0].type, "float32 (s0, 2)");
    EXPECT_EQ(program.ranges().at("s0"), (std::pair<int64_t, int64_t>{2, 9}));
    EXPECT_TRUE(program.unsupported().empty());
    EXPECT_EQ(program.operators(), (std::vector<std::pair<std::string, int64_t>>{{"aten.add.Tensor", 1}}));
    EXPECT_EQ(program.state().at("w").tolist<float>(), (std::vector<float>{1, 2}));
    for (int64_t rows : {2, 9}) {
      const Tensor x = Tensor::ones({rows, 2});
      EXPECT_EQ(program({x})[0].sum().item<float>(), float(rows * 5));
    }
  }
}

TEST(TorchExport, SizesMayBeLinearInASymbol) {
  const std::string whole = "Symbol('s0', positive=True, integer=True)", part = "Add(Mul(Integer(2), Symbol('s0')), Integer(1))";
  std::string text = test::pt2::program();
  for (size_t at = 0; (at = text.find(whole)) != std::string::npos;) text.replace(at, whole.size(), part);
  const torch_export::Program program = load(archive(text));
  EXPECT_EQ(program.inputs()[0].shape[0].factor, 2);
  EXPECT_EQ(program.inputs()[0].shape[0].offset, 1);
  EXPECT_EQ(program({Tensor::ones({7, 2})})[0].sum().item<float>(), 35.0f);
  EXPECT_THROW(program({Tensor::ones({6, 2})}), ShapeError);
  // The least number there is, as an offset and as a factor.
  for (const char* odd :
       {"Add(Mul(Integer(-1), Symbol('s0')), Integer(-9223372036854775808))", "Mul(Integer(-9223372036854775808), Symbol('s0'))"}) {
    std::string wrong = test::pt2::program();
    for (size_t at = 0; (at = wrong.find(whole)) != std::string::npos;) wrong.replace(at, whole.size(), odd);
    EXPECT_THROW(load(archive(wrong))({Tensor::ones({7, 2})}), ShapeError);
  }
  EXPECT_THROW(program({Tensor::ones({21, 2})}), ValueError);
}

TEST(TorchExport, SizesMayBeRounded) {
  const std::string whole = "Symbol('s0', positive=True, integer=True)";
  const std::string part = "TruncToInt(Mul(Float('1.7', precision=53), ToFloat(Symbol('s0'))))";
  std::string text = test::pt2::program();
  const size_t first = text.find(whole);
  for (size_t at = first + whole.size(); (at = text.find(whole, at)) != std::string::npos;) text.replace(at, whole.size(), part);
  const torch_export::Program program = load(archive(text));
  EXPECT_EQ(program.outputs()[0].shape[0].text, "TruncToInt(1.7*ToFloat(s0))");
  EXPECT_EQ(program({Tensor::ones({5, 2})})[0].sum().item<float>(), 25.0f);
}

TEST(TorchExport, RunsInAJittedFunction) {
  const torch_export::Program program = load(archive());
  const auto step = jit([&](const Tensor& x) { return program({x})[0]; });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(step(Tensor::full({3, 2}, float(i)).realize()).sum().item<float>(), float(6 * i + 9));
  EXPECT_TRUE(step.captured());
}

TEST(TorchExport, RunsAreReplayed) {
  const torch_export::Program program = load(archive());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(program.run({Tensor::full({3, 2}, float(i)).realize()})[0].sum().item<float>(), float(6 * i + 9));
  EXPECT_EQ(program.run({Tensor::ones({4, 2}).realize()})[0].sum().item<float>(), 20.0f);
  EXPECT_THROW(program.run({Tensor::ones({3, 3})}), ShapeError);
  // The state is the caller's from here on.
  Tensor w = program.state().at("w");
  for (int i = 0; i < 4; ++i) {
    w.assign(Tensor::full({2}, float(i)));
    EXPECT_EQ(program.run({Tensor::ones({3, 2}).realize()})[0].sum().item<float>(), float(6 * i + 6));
  }
}

TEST(TorchExport, RunsThatWriteDoSoOnceEach) {
  const torch_export::Program program = load(archive(test::pt2::program({{"aten.add.Tensor", "aten.add_.Tensor"}})));
  Tensor x = Tensor::zeros({3, 2}).contiguous().realize();
  for (int i = 1; i <= 5; ++i) {
    const Tensor y = program.run({x})[0];
    EXPECT_EQ(x.tolist<float>(), (std::vector<float>{float(i), float(2 * i), float(i), float(2 * i), float(i), float(2 * i)})) << i;
    EXPECT_EQ(y.tolist<float>(), x.tolist<float>());
  }
}

TEST(TorchExport, InputsAreChecked) {
  const torch_export::Program program = load(archive());
  EXPECT_THROW(program({}), ValueError);
  EXPECT_THROW(program({Tensor::ones({3, 2}), Tensor::ones({3, 2})}), ValueError);
  EXPECT_THROW(program({int64_t{3}}), ValueError);
  EXPECT_THROW(program({Tensor::ones({3, 3})}), ShapeError);
  EXPECT_THROW(program({Tensor::ones({2})}), ShapeError);
  EXPECT_EQ(program({Tensor::ones({1, 2})})[0].shape(), (Sizes{1, 2})) << "PyTorch runs sizes below 2, though it exports for 2 and more";
  EXPECT_EQ(program({Tensor::ones({0, 2})})[0].shape(), (Sizes{0, 2}));
  EXPECT_THROW(program({Tensor::ones({10, 2})}), ValueError);
  EXPECT_THROW(program({Tensor::ones({3, 2}, {.dtype = DType::int32})}), DTypeError);
}

TEST(TorchExport, WritesIntoBuffersAndInputs) {
  const torch_export::Program program = load(archive(test::pt2::program(
      {{"aten.add.Tensor", "aten.add_.Tensor"},
       {"\"self\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}", "\"self\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}"}})));
  Tensor x = Tensor::zeros({3, 2}).contiguous().realize();
  const Tensor y = program({x})[0];
  EXPECT_EQ(x.tolist<float>(), (std::vector<float>{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(y.tolist<float>(), x.tolist<float>());
}

TEST(TorchExport, UnsupportedOperatorsAreNamedBeforeAnythingRuns) {
  const torch_export::Program program = load(archive(test::pt2::program({{"aten.add.Tensor", "aten.no_such.Tensor"}})));
  EXPECT_EQ(program.unsupported(), std::vector<std::string>{"aten.no_such.Tensor"});
  try {
    program({Tensor::ones({3, 2})});
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("aten.no_such.Tensor"), std::string::npos);
  }
}

TEST(TorchExport, IsListed) {
  const std::unique_ptr<formats::Reader> reader = formats::open(bytes(archive()));
  EXPECT_EQ(reader->format(), "torch.export");
  ASSERT_EQ(reader->tensors().size(), 1u);
  EXPECT_EQ(reader->tensors()[0].name, "w");
  EXPECT_EQ(reader->tensors()[0].bytes, 8);
  EXPECT_EQ(reader->tensor(0).tolist<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(reader->metadata()[0].first, "torch");
}

TEST(TorchExport, DamagedProgramsNameTheField) {
  expect_refused({{R"("major": 8)", R"("major": 9)"}}, "schema_version");
  expect_refused({{R"("nodes": [)", R"("nodes": [7, )"}}, "nodes[0]");
  expect_refused({{R"("target": "torch)", R"("targets": "torch)"}}, "'targets' is not known");
  expect_refused({{R"("as_tensor": {"name": "x"}}, "kind")", R"("as_tensor": {"name": "z"}}, "kind")"}}, "nothing before gives 'z'");
  expect_refused(
      {{R"("outputs": [{"as_tensor": {"name": "add"}}], "metadata")", R"("outputs": [{"as_tensor": {"name": "x"}}], "metadata")"}},
      "'x' is defined twice");
  expect_refused({{R"("as_tensor": {"name": "x"}}, "kind")", R"("as_tensor": {"name": "add"}}, "kind")"}}, "nothing before gives 'add'");
  expect_refused({{R"("as_tensor": {"name": "x"}}, "kind")", R"("as_strange": {"name": "x"}}, "kind")"}}, "'as_strange' is not known");
  expect_refused({{R"("dtype": 7)", R"("dtype": 99)"}}, "99 is no dtype");
  expect_refused({{R"("dtype": 7)", R"("dtype": "float")"}}, "an integer of 64 bits");
  expect_refused({{R"("sizes": [{"as_int": 2}])", R"("sizes": [{"as_int": -2}])"}}, "negative size");
  expect_refused({{R"("sizes": [{"as_int": 2}])", R"("sizes": [{"as_int": 2}, {"as_int": 2}])"}}, "1 strides for 2 sizes");
  expect_refused({{"Symbol('s0', positive=True, integer=True)", "Symbol('s0'"}}, "expr_str");
  expect_refused({{"Symbol('s0', positive=True, integer=True)", "Add(Add(Add(1"}}, "expr_str");
  expect_refused({{R"({"parameter": {)", R"({"token": {)"}}, "tokens");
  expect_refused({{R"({"user_output": {)", R"({"gradient_to_parameter": {)"}}, "gradients");
  expect_refused({{R"("parameter_name": "w")", R"("parameter_name": "v")"}}, "no tensor 'v'");
  expect_refused({{R"(\"builtins.tuple\")", R"(\"builtins.tuple)"}}, "in_spec");
  expect_refused({{R"("forward_arg_names": ["x"])", R"("forward_arg_names": 3)"}}, "forward_arg_names");
  expect_refused({{R"("verifiers")", R"("surprise": 1, "verifiers")"}}, "'surprise' is not known");
  expect_refused({{R"("min_val": 2)", R"("min_val": "two")"}}, "range_constraints.s0.min_val");
}

TEST(TorchExport, DamagedArchivesNameTheEntry) {
  const auto refused = [](const std::map<std::string, std::string>& replaced, const std::string& part) {
    expect_error(archive(program(), replaced), part);
  };
  refused({{"archive_format", "pt3"}}, "archive_format");
  refused({{"archive_version", "1"}}, "archive_version");
  refused({{"byteorder", "big"}}, "byteorder");
  refused({{"models/model.json", "-"}}, "models/*.json");
  refused({{"models/model.json", "-"}, {"data/aotinductor/model/x.so", "code"}}, "AOTInductor");
  refused({{"models/model.json", "{"}}, "no JSON");
  refused({{"models/model.json", std::string(100000, '[')}}, "levels");
  refused({{"models/model.json", "[]"}}, "an object");
  refused({{"data/weights/model_weights_config.json", "-"}}, "model_weights_config.json");
  refused({{"data/weights/weight_0", "-"}}, "weight_0");
  refused({{"data/weights/weight_0", "1234"}}, "'w' reaches beyond");
  const std::string huge = R"({"as_int": 9223372036854775807})";
  refused({{"data/weights/model_weights_config.json", weights(meta(huge + ", " + huge, huge + ", " + one))}}, "beyond");
  refused({{"data/weights/model_weights_config.json", weights(meta(two, one, 7, huge))}}, "reaches beyond");
  refused({{"data/weights/model_weights_config.json", weights(meta(two, R"({"as_int": -1})"))}}, "negative stride");
  refused({{"data/weights/model_weights_config.json", weights(meta(two, one, 10))}}, "complex64");
  refused({{"data/weights/model_weights_config.json", weights(meta(two, one, 5))}}, "reaches beyond");
  refused({{"data/weights/model_weights_config.json", weights(meta(one, one))}}, "which the graph's 'p_w' is not");
  refused({{"data/weights/model_weights_config.json", weights(meta(two, one), R"(, "color": 3)")}}, "'color' is not known");
  refused({{"data/weights/model_weights_config.json", weights(meta(symbol, one))}}, "size that is not known");
}

TEST(TorchExport, TruncatedArchivesAreErrors) {
  const std::string whole = archive();
  for (size_t size = 0; size < whole.size(); size += 1 + size / 40) EXPECT_THROW(load(whole.substr(0, size)), FormatError) << size;
  const std::string json = program();
  for (size_t size = 0; size < json.size(); size += 13) EXPECT_THROW(load(archive(json.substr(0, size))), FormatError) << size;
}

}  // namespace
}  // namespace tinygrad
