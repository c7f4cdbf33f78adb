// One walk of a model for all sizes of its inputs gives what a walk for each of them gives.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <string>
#include <thread>

#include <tinygrad/errors.h>
#include <tinygrad/jit.h>
#include <tinygrad/onnx.h>

#include "frontend/onnx/model_file.h"
#include "program/program.h"

namespace tinygrad::onnx::test {
namespace {

Model load_bytes(const std::string& bytes) { return load(Tensor(std::vector<uint8_t>(bytes.begin(), bytes.end()))); }

Tensor numbers(const Sizes& shape) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(std::sin(float(i) * 1.7F) + 0.25F);
  return Tensor(values, shape);
}

void expect_same(const Value& got, const Value& wanted) {
  ASSERT_EQ(got.to_string(), wanted.to_string());
  const std::vector<double> a = got.tensor().tolist<double>(), b = wanted.tensor().tolist<double>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_NEAR(a[i], b[i], 1e-4 * std::max(1.0, std::fabs(b[i]))) << "element " << i;
  }
}

/// run(), which may walk once for all sizes, against a walk of these sizes.
void check(const Model& m, const Values& inputs) {
  const Values wanted = m(inputs), got = m.run(inputs);
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [name, value] : wanted) {
    SCOPED_TRACE(name);
    expect_same(got.at(name), value);
  }
}

struct Graph {
  std::string name;
  GraphParts parts;
};

/// Each takes x (n, m) and gives what depends on its sizes.
std::vector<Graph> graphs() {
  const auto all = [](std::string name, std::vector<std::string> nodes, std::vector<std::string> initializers = {}, int64_t type = 1) {
    return Graph{std::move(name),
                 {.nodes = std::move(nodes),
                  .initializers = std::move(initializers),
                  .inputs = {value_info("x", {-1, -1})},
                  .outputs = {value_info("y", {}, type)}}};
  };
  const auto ints = [](std::string_view name, const std::vector<int64_t>& values) {
    return integers(name, {int64_t(values.size())}, values);
  };
  return {
      all("elementwise", {node("Relu", {"x"}, {"r"}), node("Add", {"r", "x"}, {"y"})}),
      all("product", {node("Transpose", {"x"}, {"t"}), node("MatMul", {"x", "t"}, {"p"}), node("Softmax", {"p"}, {"y"})}),
      all("rest of a shape", {node("Reshape", {"x", "s"}, {"y"})}, {ints("s", {-1, 1})}),
      all("kept sizes", {node("Reshape", {"x", "s"}, {"y"})}, {ints("s", {0, 1, -1})}),
      all("shape of a shape", {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "i"}, {"g"}), node("Reshape", {"x", "g"}, {"y"})},
          {ints("i", {1, 0})}),
      all("sizes as numbers",
          {node("Shape", {"x"}, {"s"}), node("Cast", {"s"}, {"f"}, {integer_attribute("to", 1)}), node("Sqrt", {"f"}, {"y"})}),
      all("sizes", {node("Shape", {"x"}, {"s"}), node("Mul", {"s", "two"}, {"y"})}, {ints("two", {2})}, 7),
      all("mean", {node("ReduceSum", {"x"}, {"t"}, {integer_attribute("keepdims", 0)}), node("Size", {"x"}, {"n"}),
                   node("Cast", {"n"}, {"f"}, {integer_attribute("to", 1)}), node("Div", {"t", "f"}, {"y"})}),
      all("expand", {node("Shape", {"x"}, {"s"}), node("Expand", {"one", "s"}, {"e"}), node("Add", {"x", "e"}, {"y"})},
          {floats("one", {1, 1}, {3})}),
      all("positions",
          {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "i"}, {"n"}), node("Range", {"zero", "n", "one"}, {"r"}),
           node("Cast", {"r"}, {"f"}, {integer_attribute("to", 1)}), node("Add", {"x", "f"}, {"y"})},
          {integers("i", {}, {1}), integers("zero", {}, {0}), integers("one", {}, {1})}),
      all("a table's first rows",
          {node("Shape", {"x"}, {"s"}), node("Slice", {"s", "zero", "one"}, {"n"}), node("Slice", {"table", "zero", "n"}, {"r"}),
           node("ReduceSum", {"r"}, {"y"})},
          {ints("zero", {0}), ints("one", {1}), floats("table", {64, 1}, std::vector<float>(64, 1.5F))}),
      all("an end beyond", {node("Slice", {"x", "zero", "far"}, {"y"})}, {ints("zero", {0}), ints("far", {1 << 30})}),
      all("all but the last", {node("Slice", {"x", "zero", "last"}, {"y"})}, {ints("zero", {0}), ints("last", {-1})}),
      all("an end inside", {node("Slice", {"x", "zero", "five"}, {"y"})}, {ints("zero", {0}), ints("five", {5})}),
      all("a step", {node("Slice", {"x", "zero", "far", "zero", "two"}, {"y"})}, {ints("zero", {0}), ints("far", {99}), ints("two", {2})}),
      all("joined", {node("Concat", {"x", "x"}, {"y"}, {integer_attribute("axis", 1)})}),
      all("halves", {node("Split", {"x"}, {"a", "y"}, {integer_attribute("axis", 1), integer_attribute("num_outputs", 2)})}),
      all("thirds", {node("Split", {"x"}, {"a", "b", "y"}, {integer_attribute("axis", 1), integer_attribute("num_outputs", 3)})}),
      all("every third from the second on", {node("Slice", {"x", "one", "far", "zero", "three"}, {"y"})},
          {ints("one", {1}), ints("far", {99}), ints("zero", {0}), ints("three", {3})}),
      all("greatest of windows",
          {node("Unsqueeze", {"x", "zero"}, {"u"}),
           node("MaxPool", {"u"}, {"y"},
                {integers_attribute("kernel_shape", {3}), integers_attribute("strides", {2}), integers_attribute("pads", {1, 1})})},
          {ints("zero", {0})}),
      all("means of windows",
          {node("Unsqueeze", {"x", "zero"}, {"u"}),
           node("AveragePool", {"u"}, {"y"},
                {integers_attribute("kernel_shape", {3}), integers_attribute("strides", {2}), integers_attribute("pads", {2, 1})})},
          {ints("zero", {0})}),
      all("means with padding",
          {node("Unsqueeze", {"x", "zero"}, {"u"}), node("AveragePool", {"u"}, {"y"},
                                                         {integers_attribute("kernel_shape", {2}), integers_attribute("dilations", {2}),
                                                          integers_attribute("pads", {1, 1}), integer_attribute("count_include_pad", 1)})},
          {ints("zero", {0})}),
      all("a shape of halves",
          {node("Shape", {"x"}, {"s"}), node("Sub", {"s", "two"}, {"t"}), node("Div", {"t", "two"}, {"h"}),
           node("Slice", {"x", "zeros", "h"}, {"p"}), node("Concat", {"h", "one"}, {"r"}, {integer_attribute("axis", 0)}),
           node("Reshape", {"p", "r"}, {"y"})},
          {ints("two", {2}), ints("zeros", {0, 0}), ints("one", {1})}),
      all("the middle", {node("Slice", {"x", "three", "last", "zero"}, {"y"})},
          {ints("zero", {0}), ints("three", {3}), ints("last", {-1})}),
      all("windows rounded up",
          {node("Unsqueeze", {"x", "zero"}, {"u"}),
           node("MaxPool", {"u"}, {"y"},
                {integers_attribute("kernel_shape", {2}), integers_attribute("strides", {2}), integer_attribute("ceil_mode", 1)})},
          {ints("zero", {0})}),
      all("a column for each", {node("Add", {"x", "row"}, {"y"})}, {floats("row", {3}, {1, 2, 3})}),
      all("squeezed", {node("Squeeze", {"x"}, {"y"})}),
      all("a mask", {node("Shape", {"x"}, {"s"}), node("ConstantOfShape", {"s"}, {"c"}), node("Trilu", {"c"}, {"t"}),
                     node("Add", {"x", "t"}, {"y"})}),
      all("is one",
          {node("Shape", {"x"}, {"s"}), node("Equal", {"s", "one"}, {"e"}), node("Where", {"e", "ones", "s"}, {"w"}),
           node("Expand", {"x", "w"}, {"y"})},
          {ints("one", {-1}), ints("ones", {1, 1})}),
      all("is five",
          {node("Shape", {"x"}, {"s"}), node("Equal", {"s", "five"}, {"e"}), node("Cast", {"e"}, {"y"}, {integer_attribute("to", 1)})},
          {ints("five", {5})}),
      all("flat",
          {node("Flatten", {"x"}, {"f"}, {integer_attribute("axis", 0)}), node("ArgMax", {"f"}, {"y"}, {integer_attribute("axis", 1)})}, {},
          7),
      all("places", {node("NonZero", {"x"}, {"y"})}, {}, 7),
      all("padded", {node("Pad", {"x", "p"}, {"y"})}, {ints("p", {1, 0, 0, 2})}),
      all("itself", {node("Identity", {"x"}, {"y"})}),
      all("rows backwards", {node("Gather", {"x", "last"}, {"y"})}, {ints("last", {-1, 0})}),
      all("norm", {node("LayerNormalization", {"x", "s"}, {"y"}, {integer_attribute("axis", -1)})}, {floats("s", {1}, {2})}),
  };
}

/// Sizes of x, first those that are captured for themselves. Sizes of 1, equal ones, and some beyond the range that the first two give.
constexpr std::pair<int64_t, int64_t> both_sizes[] = {{3, 5}, {4, 6},  {7, 2},  {5, 5},  {1, 6}, {6, 1},
                                                      {1, 1}, {16, 9}, {17, 3}, {9, 40}, {2, 2}};

TEST(OnnxAnySize, GivesWhatEachSizeGives) {
  for (const Graph& g : graphs()) {
    SCOPED_TRACE(g.name);
    const Model m = load_bytes(model(g.parts, 18));
    for (const auto& [rows, columns] : both_sizes) {
      SCOPED_TRACE(std::to_string(rows) + " by " + std::to_string(columns));
      const Values inputs{{"x", numbers({rows, columns})}};
      Values wanted;
      try {
        wanted = m(inputs);
      } catch (const Error&) {
        EXPECT_THROW(m.run(inputs), Error);
        continue;
      }
      check(m, inputs);
    }
  }
}

// What is captured for each size for itself makes programs, too.
TEST(OnnxAnySize, NothingIsCompiledBehindTheSecondSize) {
  const std::set<std::string> of_each_size{"all but the last", "an end inside", "the middle", "windows rounded up", "places", "is five"};
  for (const Graph& g : graphs()) {
    if (of_each_size.contains(g.name)) continue;
    SCOPED_TRACE(g.name);
    const Model m = load_bytes(model(g.parts, 18));
    const auto run = [&](int64_t rows) { m.run({{"x", numbers({rows, 3}).realize()}}); };
    for (const int64_t rows : {9, 11, 12}) run(rows);
    const size_t made = programs_made();
    for (const int64_t rows : {10, 16, 13, 7}) run(rows);
    EXPECT_EQ(programs_made(), made);
  }
}

TEST(OnnxAnySize, OneAxisVaries) {
  for (const Graph& g : graphs()) {
    SCOPED_TRACE(g.name);
    const Model m = load_bytes(model(g.parts, 18));
    for (const int64_t rows : {5, 9, 2, 3, 16, 1, 33, 5}) {
      SCOPED_TRACE(rows);
      check(m, {{"x", numbers({rows, 3})}});
    }
  }
}

TEST(OnnxAnySize, TwoInputsMayDiffer) {
  const Model m = load_bytes(model({.nodes = {node("Add", {"a", "b"}, {"y"})},
                                    .inputs = {value_info("a", {-1}), value_info("b", {-1})},
                                    .outputs = {value_info("y", {-1})}}));
  for (const auto& [a, b] :
       std::initializer_list<std::pair<int64_t, int64_t>>{{3, 3}, {5, 5}, {1, 7}, {7, 1}, {4, 4}, {6, 6}, {1, 1}, {9, 9}})
    check(m, {{"a", numbers({a})}, {"b", numbers({b})}});
  EXPECT_THROW(m.run({{"a", numbers({3})}, {"b", numbers({4})}}), ShapeError);
  check(m, {{"a", numbers({8})}, {"b", numbers({8})}});
}

/// Chains of random operators that keep two axes.
TEST(OnnxAnySize, RandomGraphs) {
  std::mt19937 random(3);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    std::vector<std::string> nodes;
    std::string at = "x";
    const auto add = [&](std::string_view op, std::vector<std::string> inputs, std::vector<std::string> attributes = {}) {
      const std::string out = "v" + std::to_string(nodes.size());
      nodes.push_back(node(op, inputs, {out}, attributes));
      return out;
    };
    for (int step = 0; step < 6; ++step) switch (random() % 9) {
        case 0: at = add("Transpose", {at}); break;
        case 1: at = add("Softmax", {at}); break;
        case 2: at = add("Sub", {at, add("ReduceMean", {at}, {integer_attribute("keepdims", 1)})}); break;
        case 3: at = add("Reshape", {add("Unsqueeze", {at, "one"}), "flat_rows"}); break;
        case 4: at = add("MatMul", {at, add("Transpose", {at})}); break;
        case 5: at = add("Expand", {at, add("Shape", {at})}); break;
        case 6: at = add("Concat", {at, at}, {integer_attribute("axis", int64_t(random() % 2))}); break;
        case 7: at = add("Slice", {at, "zero", "last"}); break;
        default: at = add("Sigmoid", {at}); break;
      }
    nodes.push_back(node("Identity", {at}, {"y"}));
    const Model m = load_bytes(model({.nodes = nodes,
                                      .initializers = {integers("one", {1}, {1}), integers("flat_rows", {2}, {0, -1}),
                                                       integers("zero", {1}, {0}), integers("last", {1}, {1 << 20})},
                                      .inputs = {value_info("x", {-1, -1})},
                                      .outputs = {value_info("y", {-1, -1})}},
                                     18));
    for (const auto& [rows, columns] : both_sizes) {
      SCOPED_TRACE(std::to_string(rows) + " by " + std::to_string(columns));
      check(m, {{"x", numbers({rows, columns})}});
    }
  }
}

/// The errors of these sizes are those of a walk for them alone.
void check_or_fail(const Model& m, const Values& inputs) {
  std::string wanted;
  try {
    m(inputs);
  } catch (const Error& e) {
    wanted = e.what();
  }
  if (wanted.empty()) return check(m, inputs);
  try {
    m.run(inputs);
    ADD_FAILURE() << "no error: " << wanted;
  } catch (const Error& e) {
    EXPECT_EQ(e.what(), wanted);
  }
}

TEST(OnnxAnySize, SizesThatDoNotFitAreErrors) {
  const Model m = load_bytes(model({.nodes = {node("Reshape", {"x", "s"}, {"y"})},
                                    .initializers = {integers("s", {2}, {2, 6})},
                                    .inputs = {value_info("x", {-1, -1})},
                                    .outputs = {value_info("y", {2, 6})}}));
  for (const auto& [rows, columns] : std::initializer_list<std::pair<int64_t, int64_t>>{{3, 4}, {4, 3}, {5, 3}, {6, 2}, {2, 5}, {3, 4}})
    check_or_fail(m, {{"x", numbers({rows, columns})}});
}

TEST(OnnxAnySize, WindowsMayNotFit) {
  for (const char* op : {"Conv", "MaxPool", "AveragePool"}) {
    SCOPED_TRACE(op);
    const bool is_conv = std::string_view(op) == "Conv";
    const std::vector<std::string> inputs = is_conv ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x"};
    const Model m = load_bytes(model({.nodes = {node(op, inputs, {"y"}, {integers_attribute("kernel_shape", {5})})},
                                      .initializers = {floats("w", {1, 1, 5}, {1, 2, 3, 4, 5})},
                                      .inputs = {value_info("x", {1, 1, -1})},
                                      .outputs = {value_info("y", {1, 1, -1})}}));
    for (const int64_t n : {8, 12, 5, 4, 3, 2, 1, 16, 17}) {
      SCOPED_TRACE(n);
      check_or_fail(m, {{"x", numbers({1, 1, n})}});
    }
  }
}

TEST(OnnxAnySize, ABatchOfOneMayComeFirst) {
  const Model m = load_bytes(model({.nodes = {node("MatMul", {"x", "w"}, {"p"}), node("Softmax", {"p"}, {"y"})},
                                    .initializers = {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6})},
                                    .inputs = {value_info("x", {-1, 2})},
                                    .outputs = {value_info("y", {-1, 3})}}));
  for (const int64_t n : {1, 4, 2, 1, 9, 16, 3}) check(m, {{"x", numbers({n, 2})}});
}

TEST(OnnxAnySize, NothingIsASizeToo) {
  for (const Graph& g : graphs()) {
    SCOPED_TRACE(g.name);
    const Model m = load_bytes(model(g.parts, 18));
    for (const auto& [rows, columns] :
         std::initializer_list<std::pair<int64_t, int64_t>>{{3, 5}, {4, 6}, {0, 5}, {0, 3}, {3, 0}, {0, 0}, {5, 7}}) {
      SCOPED_TRACE(std::to_string(rows) + " by " + std::to_string(columns));
      check_or_fail(m, {{"x", numbers({rows, columns})}});
    }
  }
}

TEST(OnnxAnySize, ResultsStayAndInputsMayBeViews) {
  const Model m = load_bytes(model({.nodes = {node("Identity", {"x"}, {"same"}), node("Relu", {"x"}, {"y"})},
                                    .inputs = {value_info("x", {-1, -1})},
                                    .outputs = {value_info("same", {-1, -1}), value_info("y", {-1, -1})}}));
  std::vector<std::pair<Values, Values>> all;
  for (const auto& [rows, columns] : both_sizes) {
    Tensor x = numbers({columns, rows + 1})[Slice{.start = 0, .stop = columns}].transpose(0, 1).shrink({{1, rows + 1}, {0, columns}});
    const Values inputs{{"x", x}};
    all.emplace_back(m.run(inputs), m(inputs));
  }
  for (const auto& [got, wanted] : all)
    for (const auto& [name, value] : wanted) expect_same(got.at(name), value);
}

TEST(OnnxAnySize, InputsAreReadWhenACallIsMade) {
  const Model m =
      load_bytes(model({.nodes = {node("Identity", {"x"}, {"y"})}, .inputs = {value_info("x", {-1})}, .outputs = {value_info("y", {-1})}}));
  m.run({{"x", numbers({3})}});
  m.run({{"x", numbers({4})}});
  Tensor x = numbers({5}).contiguous().realize();
  const Tensor y = m.run({{"x", x}}).at("y").tensor(), before = numbers({5});
  x.assign(Tensor::zeros({5})).realize();
  expect_same(y, before);
}

TEST(OnnxAnySize, AJittedFunctionMayRunAModel) {
  const Model m =
      load_bytes(model({.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {value_info("x", {-1})}, .outputs = {value_info("y", {-1})}}));
  const auto f = jit([&](const Tensor& x) { return m.run({{"x", x * 2}}).at("y").tensor() + 1; });
  for (const int64_t n : {3, 5, 3, 5, 5, 3, 7, 7}) expect_same(f(numbers({n})), (numbers({n}) * 2).relu() + 1);
}

TEST(OnnxAnySize, ThreadsMayCallAtOnce) {
  const Model m =
      load_bytes(model({.nodes = {node("Transpose", {"x"}, {"t"}), node("MatMul", {"x", "t"}, {"p"}), node("Softmax", {"p"}, {"y"})},
                        .inputs = {value_info("x", {-1, -1})},
                        .outputs = {value_info("y", {-1, -1})}}));
  std::vector<std::thread> threads;
  for (int64_t k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (int64_t i = 0; i < 8; ++i) check(m, {{"x", numbers({2 + (i * 5 + k) % 9, 2 + (i + 3 * k) % 7})}});
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace tinygrad::onnx::test
