// ONNX models as programs of tensors: lazy, captured, differentiable, with weights that train.
#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include <map>

#include <tinygrad/errors.h>
#include <tinygrad/jit.h>
#include <tinygrad/onnx.h>

#include "frontend/onnx/model_file.h"
#include "support/message_of.h"
#include "support/temp_folder.h"

namespace tinygrad::onnx::test {
namespace {

using Floats = std::vector<float>;

Model load_bytes(const std::string& bytes) { return load(Tensor(std::vector<uint8_t>(bytes.begin(), bytes.end()))); }
template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
std::string floats(std::string_view name, const std::vector<int64_t>& dims, const Floats& values) {
  return tensor(name, dims, 1, raw(values));
}
std::string integers(std::string_view name, const std::vector<int64_t>& values) {
  return tensor(name, {int64_t(values.size())}, 7, raw(values));
}

/// y = relu(x @ w + b)
Model layer() {
  return load_bytes(model({.nodes = {node("MatMul", {"x", "w"}, {"h"}), node("Add", {"h", "b"}, {"s"}), node("Relu", {"s"}, {"y"})},
                           .initializers = {floats("w", {2, 2}, {1, 2, 3, -4}), floats("b", {2}, {1, 1})},
                           .inputs = {value_info("x", {-1, 2})},
                           .outputs = {value_info("y", {-1, 2})}}));
}

TEST(Onnx, IsAFunctionOfNamedTensors) {
  const Model m = layer();
  ASSERT_EQ(m.inputs().size(), 1U);
  EXPECT_EQ(m.inputs()[0].name, "x");
  EXPECT_EQ(m.outputs()[0].name, "y");
  EXPECT_EQ(m.operators(), (std::map<std::string, int64_t>{{"Add", 1}, {"MatMul", 1}, {"Relu", 1}}));
  EXPECT_EQ(m({{"x", Tensor({{1.0F, 2.0F}})}}).at("y").tensor().tolist(), (Floats{8, 0}));
}

TEST(Onnx, IsCapturedAndReplayed) {
  const Model m = layer();
  for (int i = 0; i < 4; ++i) {
    const Tensor x({{float(i), 2.0F}});
    EXPECT_EQ(m.run({{"x", x}}).at("y").tensor().tolist(), (Floats{float(i) + 7, 0}));
  }
  EXPECT_EQ(m.run({{"x", Tensor::ones({3, 2})}}).at("y").shape(), (Sizes{3, 2}));
}

// Whoever writes into one does not write into weights, inputs or other outputs.
TEST(Onnx, OutputsAreMemoryOfTheirOwn) {
  const Model m =
      load_bytes(model({.nodes = {node("Identity", {"w"}, {"weight"}), node("Slice", {"w", "zero", "one"}, {"part"}),
                                  node("Relu", {"x"}, {"y"}), node("Identity", {"y"}, {"again"}), node("Identity", {"x"}, {"same"})},
                        .initializers = {floats("w", {2, 2}, {1, 2, 3, 4}), integers("zero", {0}), integers("one", {1})},
                        .inputs = {value_info("x", {-1, 2})},
                        .outputs = {value_info("weight", {2, 2}), value_info("part", {1, 2}), value_info("y", {-1, 2}),
                                    value_info("again", {-1, 2}), value_info("same", {-1, 2})}}));
  const auto check = [](const Values& out, const Sizes& shape) {
    const std::map<std::string, Tensor> wanted{{"weight", Tensor({{1.0F, 2.0F}, {3.0F, 4.0F}})},
                                               {"part", Tensor({{1.0F, 2.0F}})},
                                               {"y", Tensor::ones(shape)},
                                               {"again", Tensor::ones(shape)},
                                               {"same", Tensor::ones(shape)}};
    std::vector<std::string> written;
    for (const auto& [name, value] : out) {
      Tensor t = value.tensor();
      EXPECT_EQ(t.tolist(), wanted.at(name).tolist()) << name << " behind " << fmt::format("{}", fmt::join(written, ", "));
      t.assign(t.full_like(7)).realize();
      written.push_back(name);
    }
  };
  for (const int64_t rows : {2, 2, 2, 3, 4, 5, 1}) {  // walked, captured, replayed, and for any size
    const Tensor x = Tensor::ones({rows, 2}).contiguous().realize();
    check(m.run({{"x", x}}), {rows, 2});
    EXPECT_EQ(x.tolist(), Floats(size_t(rows) * 2, 1));
  }
  for (int call = 0; call < 2; ++call) {
    const Values lazy = m({{"x", Tensor::ones({2, 2}).contiguous().realize()}});
    check({{"weight", lazy.at("weight")}}, {});
    check({{"part", lazy.at("part")}}, {});
  }
}

// As for tensors: nothing is there. A place of another row is not.
TEST(Onnx, WhatLiesOutsideIsNotRead) {
  const Model m = load_bytes(model({.nodes = {node("Gather", {"x", "i"}, {"rows"}), node("Unsqueeze", {"i", "last"}, {"places"}),
                                              node("GatherND", {"x", "places"}, {"named"})},
                                    .initializers = {integers("last", {-1})},
                                    .inputs = {value_info("x", {-1}), value_info("i", {-1}, 7)},
                                    .outputs = {value_info("rows", {-1}), value_info("named", {-1})}}));
  const Tensor i(std::vector<int64_t>{0, -3, 2, -4, -6, -7, 3, 100});
  for (int call = 0; call < 3; ++call) {
    const Values out = m.run({{"x", Tensor({1.0F, 2.0F, 3.0F})}, {"i", i}});
    for (const auto& [name, value] : out) EXPECT_EQ(value.tensor().tolist(), (Floats{1, 1, 3, 0, 0, 0, 0, 0})) << name;
  }
  const Values longer = m.run({{"x", Tensor({1.0F, 2.0F, 3.0F, 4.0F})}, {"i", i}});  // walked for any size
  EXPECT_EQ(longer.at("rows").tensor().tolist(), (Floats{1, 2, 3, 1, 0, 0, 4, 0}));
}

TEST(Onnx, IsDifferentiableAndTrains) {
  const Model m = layer();
  const Tensor x({{1.0F, 2.0F}});
  m({{"x", x}}).at("y").tensor().sum().backward();
  EXPECT_EQ(x.grad().tolist(), (Floats{1, 3}));
  Tensor& w = m.parameters().at("w");
  EXPECT_EQ(w.grad().tolist(), (Floats{1, 0, 2, 0}));
  w.assign(w * 2);
  EXPECT_EQ(m({{"x", x}}).at("y").tensor().tolist(), (Floats{15, 0}));
}

TEST(Onnx, CapturedCallsSeeWeightsThatChange) {
  // y = x * (w * s), z = w * s, where s is a scale that is known when the model is read.
  const Model m = load_bytes(model({.nodes = {node("Mul", {"w", "s"}, {"z"}), node("Mul", {"x", "z"}, {"y"})},
                                    .initializers = {floats("w", {2}, {1, 2}), floats("s", {}, {3})},
                                    .inputs = {value_info("x", {2})},
                                    .outputs = {value_info("y", {2}), value_info("z", {2})}}));
  const Tensor x({1.0F, 10.0F});
  const auto expect_runs = [&](const Floats& y, const Floats& z) {
    for (int i = 0; i < 4; ++i) {
      const Values out = m.run({{"x", x}});
      EXPECT_EQ(out.at("y").tensor().tolist(), y);
      EXPECT_EQ(out.at("z").tensor().tolist(), z);
    }
  };
  expect_runs({3, 60}, {3, 6});
  Tensor &w = m.parameters().at("w"), &s = m.parameters().at("s");
  expect_runs({3, 60}, {3, 6});
  w.assign(w + 1).realize();
  expect_runs({6, 90}, {6, 9});
  w.assign(w + 1);
  expect_runs({9, 120}, {9, 12});
  s.assign(Tensor(1.0F));
  expect_runs({3, 40}, {3, 4});
  w = Tensor({5.0F, 6.0F});
  expect_runs({5, 60}, {5, 6});
  m.parameters().at("s").replace(Tensor(2.0F));
  expect_runs({10, 120}, {10, 12});
  w = Tensor({5.0F, 6.0F, 7.0F});
  EXPECT_THROW(m.run({{"x", x}}), ShapeError);
}

TEST(Onnx, KeepsTheSignaturesUsedLast) {
  const Model m = layer();
  for (int round = 0; round < 2; ++round)
    for (int64_t rows = 1; rows < 24; ++rows) EXPECT_EQ(m.run({{"x", Tensor::ones({rows, 2})}}).at("y").shape(), (Sizes{rows, 2}));
}

/// int32 products of codes of all values less zero points of both factors.
TEST(Onnx, ProductsOfCodesAreExact) {
  constexpr int64_t m = 9, k = 70, n = 19;
  for (const bool is_unsigned : {true, false}) {
    SCOPED_TRACE(is_unsigned);
    std::vector<uint8_t> a, b, b_zero;
    for (int64_t i = 0; i < m * k; ++i) a.push_back(uint8_t(i % 3 == 0 ? 255 : i * 37));
    for (int64_t i = 0; i < k * n; ++i) b.push_back(uint8_t(i % 5 == 0 ? 128 : i * 91));
    for (int64_t i = 0; i < n; ++i) b_zero.push_back(uint8_t(is_unsigned ? i * 29 : -i * 7));
    const int64_t b_type = is_unsigned ? 2 : 3;
    const Model model_of_codes =
        load_bytes(model({.nodes = {node("MatMulInteger", {"a", "b", "az", "bz"}, {"y"})},
                          .initializers = {tensor("b", {k, n}, b_type, raw(b)), tensor("az", {}, 2, raw(std::vector<uint8_t>{131})),
                                           tensor("bz", {n}, b_type, raw(b_zero))},
                          .inputs = {value_info("a", {m, k}, 2)},
                          .outputs = {value_info("y", {m, n}, 6)}}));
    const auto number = [&](uint8_t bits) { return is_unsigned ? int64_t(bits) : int64_t(int8_t(bits)); };
    std::vector<int32_t> expected;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        int64_t sum = 0;
        for (int64_t t = 0; t < k; ++t)
          sum += (int64_t(a[size_t(i * k + t)]) - 131) * (number(b[size_t(t * n + j)]) - number(b_zero[size_t(j)]));
        expected.push_back(int32_t(sum));
      }
    for (int call = 0; call < 3; ++call)
      EXPECT_EQ(model_of_codes.run({{"a", Tensor(a).reshape({m, k})}}).at("y").tensor().flatten().tolist<int32_t>(), expected);
  }
}

/// Scales of each column, and what is dequantized alone.
TEST(Onnx, ProductsOfDequantizedNumbersAreThoseOfTheirCodes) {
  const std::vector<uint8_t> codes{0, 255, 7, 128, 129, 3};
  const std::vector<int8_t> weights{-128, 127, 5, -3, 64, 0};
  const Model m = load_bytes(model(
      {.nodes = {node("DequantizeLinear", {"x", "xs", "xz"}, {"xf"}),
                 node("DequantizeLinear", {"w", "ws", "wz"}, {"wf"}, {integer_attribute("axis", 1)}), node("MatMul", {"xf", "wf"}, {"y"})},
       .initializers = {tensor("w", {3, 2}, 3, raw(weights)), floats("ws", {2}, {0.5F, 0.25F}),
                        tensor("wz", {2}, 3, raw(std::vector<int8_t>{1, -2})), floats("xs", {}, {0.125F}),
                        tensor("xz", {}, 2, raw(std::vector<uint8_t>{128}))},
       .inputs = {value_info("x", {2, 3}, 2)},
       .outputs = {value_info("y", {2, 2})}}));
  Floats expected;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      float sum = 0;
      for (int t = 0; t < 3; ++t)
        sum += 0.125F * float(codes[size_t(3 * i + t)] - 128) * (j ? 0.25F : 0.5F) * float(weights[size_t(2 * t + j)] - (j ? -2 : 1));
      expected.push_back(sum);
    }
  EXPECT_EQ(m.run({{"x", Tensor(codes).reshape({2, 3})}}).at("y").tensor().flatten().tolist(), expected);
}

TEST(Onnx, CallsInAJittedFunction) {
  const Model m = layer();
  const auto f = jit([&](const Tensor& x) { return m({{"x", x}}).at("y").tensor() * 2; });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f(Tensor({{float(i), 2.0F}}).realize()).tolist(), (Floats{2 * (float(i) + 7), 0}));
}

TEST(Onnx, ShapesAreFoldedAndConditionsChosen) {
  // y = x reshaped to (size(x, 0) * 2, -1), or -x where x has fewer than three rows.
  const GraphParts same{.nodes = {node("Reshape", {"x", "to"}, {"r"})}, .outputs = {value_info("r", {-1, -1})}};
  const GraphParts negative{.nodes = {node("Neg", {"x"}, {"r"})}, .outputs = {value_info("r", {-1, -1})}};
  const Model m = load_bytes(model(
      {.nodes = {node("Shape", {"x"}, {"shape"}), node("Gather", {"shape", "first"}, {"rows"}), node("Mul", {"rows", "two"}, {"twice"}),
                 node("Concat", {"twice", "rest"}, {"to"}, {integer_attribute("axis", 0)}), node("Less", {"rows", "three"}, {"is_small"}),
                 node("If", {"is_small"}, {"y"},
                      {graph_attribute("then_branch", negative.bytes()), graph_attribute("else_branch", same.bytes())})},
       .initializers = {integers("first", {0}), integers("two", {2}), integers("three", {3}), integers("rest", {-1})},
       .inputs = {value_info("x", {-1, -1})},
       .outputs = {value_info("y", {-1, -1})}}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(m.run({{"x", Tensor::ones({4, 4})}}).at("y").shape(), (Sizes{8, 2}));
    EXPECT_EQ(m.run({{"x", Tensor::ones({2, 2})}}).at("y").tensor().tolist(), (Floats{-1, -1, -1, -1}));
  }
}

TEST(Onnx, ReplaysSeeValuesThatShapesDependOn) {
  const Model m = load_bytes(model({.nodes = {node("Reshape", {"x", "to"}, {"y"})},
                                    .inputs = {value_info("x", {6}), value_info("to", {2}, 7)},
                                    .outputs = {value_info("y", {-1, -1})}}));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(m.run({{"x", Tensor::ones({6})}, {"to", Tensor(std::vector<int64_t>{2, 3})}}).at("y").shape(), (Sizes{2, 3}));
    EXPECT_EQ(m.run({{"x", Tensor::ones({6})}, {"to", Tensor(std::vector<int64_t>{6, 1})}}).at("y").shape(), (Sizes{6, 1}));
  }
}

TEST(Onnx, OutputsWhoseSizesDependOnDataAreFoundEachTime) {
  const Model m = load_bytes(model({.nodes = {node("Relu", {"x"}, {"r"}), node("NonZero", {"r"}, {"y"})},
                                    .inputs = {value_info("x", {3})},
                                    .outputs = {value_info("y", {1, -1}, 7)}}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(m.run({{"x", Tensor{1.0F, -1.0F, 2.0F}}}).at("y").tensor().tolist<int64_t>(), (std::vector<int64_t>{0, 2}));
    EXPECT_EQ(m.run({{"x", Tensor{-1.0F, 3.0F, -2.0F}}}).at("y").tensor().tolist<int64_t>(), (std::vector<int64_t>{1}));
  }
}

TEST(Onnx, FunctionsHaveOverloadsAndAttributes) {
  const auto function = [](std::string_view overload, const std::string& body) {
    return message(25, message(1, "f") + message(4, "a") + message(5, "b") + message(7, body) + message(9, number(2, 20)) +
                           message(10, "own") + message(13, overload) +
                           message(11, message(1, "alpha") + number(20, 1) + varint(2 << 3 | 5) + raw(Floats{0.25F})));
  };
  const std::string leaky = node("LeakyRelu", {"a"}, {"b"}, {message(1, "alpha") + message(21, "alpha") + number(20, 1)});
  const std::string second = node("f", {"x"}, {"z"}, {}, "own") + message(8, "other");
  const GraphParts g{.nodes = {node("f", {"x"}, {"y"}, {}, "own"), second},
                     .inputs = {value_info("x", {2})},
                     .outputs = {value_info("y", {2}), value_info("z", {2})}};
  const Model m = load_bytes(model(g) + function("", leaky) + function("other", node("Neg", {"a"}, {"b"})));
  const Values out = m({{"x", Tensor{4.0F, -4.0F}}});
  EXPECT_EQ(out.at("y").tensor().tolist(), (Floats{4, -1}));
  EXPECT_EQ(out.at("z").tensor().tolist(), (Floats{-4, 4}));
}

TEST(Onnx, WeightsLieInFilesBesideTheModel) {
  const tinygrad::test::TempFolder folder;
  std::vector<float> values(1024);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(i);
  folder.write("weights.bin", std::string(64, ' ') + raw(values));
  const GraphParts g{.nodes = {node("Add", {"x", "w"}, {"y"})},
                     .initializers = {external_tensor("w", {1024}, {{"location", "weights.bin"}, {"offset", "64"}})},
                     .inputs = {value_info("x", {1})},
                     .outputs = {value_info("y", {1024})}};
  const Model m = load(folder.write("m.onnx", model(g)));
  EXPECT_EQ(m({{"x", Tensor{1.0F}}}).at("y").tensor()[1000].item(), 1001);
}

TEST(Onnx, MistakesAreErrorsThatNameThem) {
  using tinygrad::test::message_of;
  const Model m = layer();
  const Tensor x = Tensor::ones({1, 2});
  EXPECT_NE(message_of<ValueError>([&] { m({}); }).find("the input 'x' is missing"), std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { m({{"x", x}, {"z", x}}); }).find("there is no input 'z'"), std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { m({{"x", x.half()}}); }).find("float16 (1, 2), expected float32"), std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { m({{"x", Tensor::ones({1, 3})}}); }).find("float32 (1, 3), expected float32"), std::string::npos);
  const Model bad = load_bytes(model({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                      .initializers = {floats("w", {2}, {1, 2})},
                                      .inputs = {value_info("x", {3})},
                                      .outputs = {value_info("y", {3})}}));
  EXPECT_NE(message_of<ShapeError>([&] { bad({{"x", Tensor::ones({3})}}); }).find("Add node 'y'"), std::string::npos);
}

}  // namespace
}  // namespace tinygrad::onnx::test
