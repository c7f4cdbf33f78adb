// Operators whose attributes and inputs are hostile: each is a typed error at once, or the right answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

#include <tinygrad/errors.h>
#include <tinygrad/onnx.h>

#include "frontend/onnx/model_file.h"

namespace tinygrad::onnx::test {
namespace {

constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

using List = std::vector<std::string>;

/// A node whose inputs are all initializers.
struct Case {
  const char* name;
  const char* op;
  List initializers;
  List attributes = {};
  size_t inputs = 0;  ///< names a, b, c, ...; as many as there are initializers, or more
  int64_t version = 20;
  const char* domain = "";
};

Values outputs_of(const Case& c) {
  List inputs;
  for (size_t i = 0; i < std::max(c.inputs, c.initializers.size()); ++i)
    inputs.push_back(i < c.initializers.size() ? std::string(1, char('a' + i)) : "");
  const GraphParts g{
      .nodes = {node(c.op, inputs, {"y"}, c.attributes, c.domain)}, .initializers = c.initializers, .outputs = {message(1, "y")}};
  const std::string bytes = model(g, c.version);
  Values out = load(Tensor(std::vector<uint8_t>(bytes.begin(), bytes.end())))({});
  if (out.at("y").kind() == Value::Kind::tensor) out.at("y").tensor().realize();
  return out;
}
Tensor output_of(const Case& c) { return outputs_of(c).at("y").tensor(); }

std::string x(const std::vector<int64_t>& dims) {
  size_t n = 1;
  for (int64_t d : dims) n *= size_t(d);
  std::vector<float> values;
  for (size_t i = 0; i < n; ++i) values.push_back(float(i));
  return floats("a", dims, values);
}
std::string body(const List& nodes, const List& inputs, const List& outputs, const List& initializers = {}) {
  GraphParts g{.nodes = nodes, .initializers = initializers};
  for (const std::string& i : inputs) g.inputs.push_back(message(1, i));
  for (const std::string& o : outputs) g.outputs.push_back(message(1, o));
  return g.bytes();
}
const std::string yes(1, '\1');

std::vector<Case> sizes_and_lists() {
  return {
      {"sizes that wrap to the axis", "Split", {integers("a", {4}, {1, 2, 3, 4}), integers("b", {5}, {most, most, 2, 2, 2})}},
      {"a size behind the axis", "Split", {integers("a", {4}, {1, 2, 3, 4}), integers("b", {2}, {5, -1})}},
      {"an order that is none", "Transpose", {integers("a", {2, 2}, {1, 2, 3, 4})}, {integers_attribute("perm", {0, 0})}},
      {"an order far outside", "Transpose", {integers("a", {2, 2}, {1, 2, 3, 4})}, {integers_attribute("perm", {most, 0})}},
      {"an order that is 1 in 32 bits", "Transpose", {x({2, 2})}, {integers_attribute("perm", {(int64_t{1} << 32) + 1, 0})}},
      {"a range of two types", "Range", {integers("a", {}, {0}), integers("b", {}, {4}), floats("c", {}, {1.0F})}},
      {"a range of nothing", "Range", {integers("a", {0}, {}), integers("b", {}, {4}), integers("c", {}, {1})}},
      {"a range to infinity", "Range", {floats("a", {}, {0}), floats("b", {}, {infinity}), floats("c", {}, {1})}},
      {"indices that are floats", "Gather", {integers("a", {2}, {1, 2}), floats("b", {1}, {1})}},
      {"an index outside", "Gather", {x({3}), integers("b", {2}, {0, 3})}},
      {"a shape that wraps", "Reshape", {x({2, 2}), integers("b", {3}, {int64_t{1} << 32, int64_t{1} << 32, -1})}},
      {"a negative size", "Expand", {x({1}), integers("b", {1}, {-1})}},
      {"a huge size", "Expand", {x({1}), integers("b", {2}, {int64_t{1} << 40, int64_t{1} << 40})}},
      {"padding of nothing", "Pad", {floats("a", {0}, {}), integers("b", {2}, {1, 1})}, {text_attribute("mode", "reflect")}},
      {"long padding", "Pad", {x({2}), integers("b", {2}, {int64_t{1} << 40, 0})}, {text_attribute("mode", "edge")}},
      {"padding that wraps", "Pad", {x({2}), integers("b", {2}, {most, least})}},
      {"a window without end", "HannWindow", {integers("a", {}, {int64_t{1} << 50})}},
      {"a depth below 1", "OneHot", {integers("a", {2}, {0, 1}), integers("b", {}, {-5}), floats("c", {2}, {0, 1})}},
      {"batches that differ", "GatherND", {x({2, 3}), integers("b", {3, 1}, {0, 1, 2})}, {integer_attribute("batch_dims", 1)}},
      {"negative batches", "GatherND", {x({2, 3}), integers("b", {2, 1}, {0, 1})}, {integer_attribute("batch_dims", -1)}},
      {"updates of another shape", "ScatterND", {x({4}), integers("b", {2, 1}, {0, 1}), floats("c", {2, 1}, {1, 2})}},
      {"fewer updates", "ScatterElements", {x({4}), integers("b", {2}, {0, 1}), floats("c", {1}, {1})}},
      {"weights of other channels",
       "BatchNormalization",
       {x({2, 3, 4}), floats("b", {1}, {1}), floats("c", {1}, {0}), floats("d", {1}, {0}), floats("e", {1}, {1})}},
      {"no channels", "InstanceNormalization", {x({3}), floats("b", {3}, {1, 1, 1}), floats("c", {3}, {0, 0, 0})}},
      {"no channels to sum", "LRN", {x({3})}, {integer_attribute("size", 3)}},
      {"a sum over no channels", "LRN", {x({1, 3})}, {integer_attribute("size", 0)}},
      {"a kernel that wraps",
       "MaxPool",
       {x({1, 1, 4})},
       {integers_attribute("kernel_shape", {most}), integers_attribute("dilations", {most})}},
      {"a long kernel",
       "AveragePool",
       {x({1, 1, 4})},
       {integers_attribute("kernel_shape", {int64_t{1} << 40}), integers_attribute("pads", {most, 1})}},
      {"an order of 0", "LpPool", {x({1, 1, 4})}, {integers_attribute("kernel_shape", {2}), integer_attribute("p", 0)}},
      {"a kernel that the weights have not",
       "Conv",
       {x({1, 1, 4}), floats("b", {1, 1, 2}, {1, 1})},
       {integers_attribute("kernel_shape", {3})}},
      {"sizes without end", "Resize", {x({1, 1, 2, 2}), floats("b", {0}, {}), floats("c", {0}, {}), integers("d", {4}, {1, 1, 2, most})}},
      {"scales without end", "Resize", {x({2}), floats("b", {0}, {}), floats("c", {1}, {1e30F})}},
      {"a scale of nothing", "Resize", {x({2}), floats("b", {0}, {}), floats("c", {1}, {nan})}},
      {"a short region",
       "Resize",
       {x({2}), floats("b", {1}, {0}), floats("c", {0}, {}), integers("d", {1}, {3})},
       {text_attribute("coordinate_transformation_mode", "tf_crop_and_resize")}},
      {"bins without end",
       "RoiAlign",
       {x({1, 1, 2, 2}), floats("b", {1, 4}, {0, 0, 1, 1}), integers("c", {1}, {0})},
       {integer_attribute("output_height", most)}},
      {"an image that there is not",
       "RoiAlign",
       {x({1, 1, 2, 2}), floats("b", {1, 4}, {0, 0, 1, 1}), integers("c", {1}, {-7})},
       {text_attribute("mode", "max")}},
      {"boxes of three numbers", "NonMaxSuppression", {x({1, 4, 3}), floats("b", {1, 1, 3}, {1, 2, 3})}},
      {"no threshold", "NonMaxSuppression", {x({1, 1, 4}), floats("b", {1, 1, 1}, {1}), integers("c", {0}, {})}},
      {"frequencies without end",
       "MelWeightMatrix",
       {integers("a", {}, {most - 4}), integers("b", {}, {8}), integers("c", {}, {8}), floats("d", {}, {0}), floats("e", {}, {1})}},
      {"a long transform", "DFT", {x({1, 4, 1}), integers("b", {}, {int64_t{1} << 40})}},
      {"weights of another size",
       "RNN",
       {x({1, 1, 2}), floats("b", {1, 2, 2}, {1, 1, 1, 1}), floats("c", {2, 2}, {1, 1, 1, 1})},
       {integer_attribute("hidden_size", 2)}},
      {"a hidden size without end",
       "RNN",
       {x({1, 1, 2}), floats("b", {1, 2, 2}, {1, 1, 1, 1}), floats("c", {1, 2, 2}, {1, 1, 1, 1})},
       {integer_attribute("hidden_size", most)}},
      {"a type that is no type", "Cast", {x({2})}, {integer_attribute("to", 257)}},
      {"no type", "Cast", {x({2})}},
      {"the width of no type", "BitCast", {x({2})}, {integer_attribute("to", 8)}, 0, 26},
      {"a precision that is no type", "QuantizeLinear", {x({2}), floats("b", {}, {1})}, {integer_attribute("precision", 257)}, 0, 25},
      {"blocks of negative sizes",
       "DequantizeLinear",
       {tensor("a", {2}, 2, "ab"), floats("b", {1}, {1})},
       {integer_attribute("block_size", least)},
       0,
       21},
      {"an input too few", "Slice", {}, {}, 3},
  };
}

std::vector<Case> choices() {
  return {
      {"neither 0 nor 1", "ReduceSum", {x({2})}, {integer_attribute("keepdims", 2)}},
      {"a mode", "DepthToSpace", {x({1, 4, 1, 1})}, {integer_attribute("blocksize", 2), text_attribute("mode", "X")}},
      {"a reduction", "NegativeLogLikelihoodLoss", {x({1, 2}), integers("b", {1}, {0})}, {text_attribute("reduction", "X")}},
      {"a padding", "MaxPool", {x({1, 1, 4})}, {integers_attribute("kernel_shape", {2}), text_attribute("auto_pad", "X")}},
      {"a form of gelu", "Gelu", {x({2})}, {text_attribute("approximate", "X")}},
      {"a direction", "RNN", {x({1, 1, 1}), floats("b", {1, 1, 1}, {1}), floats("c", {1, 1, 1}, {1})}, {text_attribute("direction", "X")}},
      {"a norm", "Normalizer", {x({1, 2})}, {text_attribute("norm", "X")}, 0, 20, "ai.onnx.ml"},
      {"a nearest mode", "Resize", {x({2}), floats("b", {0}, {}), floats("c", {1}, {2})}, {text_attribute("nearest_mode", "X")}},
      {"a kind of count",
       "TfIdfVectorizer",
       {integers("a", {1}, {1})},
       {text_attribute("mode", "X"), integer_attribute("min_gram_length", 1), integer_attribute("max_gram_length", 1),
        integer_attribute("max_skip_count", 0), integers_attribute("ngram_counts", {0}), integers_attribute("ngram_indexes", {0}),
        integers_attribute("pool_int64s", {1})}},
      {"a language",
       "StringNormalizer",
       {texts("a", {1}, {"I"})},
       {text_attribute("locale", "tr_TR"), text_attribute("case_change_action", "LOWER")}},
  };
}

std::vector<Case> loops() {
  const std::string nothing = body({}, {"i", "c"}, {"c"});
  const std::string inner =
      body({node("Loop", {"n", "c"}, {}, {graph_attribute("body", nothing)})}, {"i", "c"}, {"c"}, {integers("n", {}, {int64_t{1} << 62})});
  const std::string cases = tensor("b", {}, 9, yes);
  const std::string pattern = "((a{100}){100}){100}";
  std::string wide_row;
  for (int i = 0; i < 6000; ++i) wide_row += "a ";
  std::vector<std::string> rows(6000, "");
  rows[0] = wide_row;
  const List tree{integers_attribute("nodes_treeids", {0, 0}),      integers_attribute("nodes_nodeids", {0, 1}),
                  integers_attribute("nodes_featureids", {0, 0}),   integers_attribute("nodes_truenodeids", {1, 0}),
                  integers_attribute("nodes_falsenodeids", {1, 0}), texts_attribute("nodes_modes", {"BRANCH_LEQ", "BRANCH_LEQ"}),
                  numbers_attribute("nodes_values", {0, 0}),        integers_attribute("target_treeids", {}),
                  integers_attribute("target_nodeids", {}),         integers_attribute("target_ids", {}),
                  numbers_attribute("target_weights", {})};
  return {
      {"a loop without end", "Loop", {integers("a", {}, {int64_t{1} << 62}), cases}, {graph_attribute("body", nothing)}},
      {"loops within loops", "Loop", {integers("a", {}, {int64_t{1} << 62}), cases}, {graph_attribute("body", inner)}},
      {"a condition of nothing",
       "If",
       {tensor("a", {0}, 9, "")},
       {graph_attribute("then_branch", nothing), graph_attribute("else_branch", nothing)}},
      {"scans of different lengths",
       "Scan",
       {x({2}), floats("b", {3}, {1, 2, 3})},
       {graph_attribute("body", body({}, {"p", "q"}, {"p"})), integer_attribute("num_scan_inputs", 2)}},
      {"a scan of no inputs", "Scan", {}, {graph_attribute("body", nothing), integer_attribute("num_scan_inputs", 1)}, 0, 8},
      {"a pattern that repeats without end", "RegexFullMatch", {texts("a", {1}, {"aaaa"})}, {text_attribute("pattern", pattern)}},
      {"a pattern that looks ahead", "RegexFullMatch", {texts("a", {1}, {"aaaa"})}, {text_attribute("pattern", "(?=a)a*")}},
      {"an escape of another syntax", "RegexFullMatch", {texts("a", {1}, {"z"})}, {text_attribute("pattern", "\\z")}},
      {"pieces of one text in all rows", "StringSplit", {texts("a", {6000}, rows)}},
      {"texts for all pairs", "StringConcat", {texts("a", {6000, 1}, rows), texts("b", {1, 6000}, rows)}},
      {"grams that are counted from 0",
       "TfIdfVectorizer",
       {integers("a", {1}, {1})},
       {integer_attribute("min_gram_length", least), integer_attribute("max_gram_length", most), integer_attribute("max_skip_count", most),
        integers_attribute("ngram_counts", {most}), integers_attribute("ngram_indexes", {0}), integers_attribute("pool_int64s", {1})}},
      {"a tree with a cycle", "TreeEnsembleRegressor", {x({1, 1})}, tree, 0, 20, "ai.onnx.ml"},
      {"targets without end", "TreeEnsembleRegressor", {x({1, 1})}, {integer_attribute("n_targets", most)}, 0, 20, "ai.onnx.ml"},
      {"vectors that wrap",
       "SVMClassifier",
       {x({1, 1})},
       {integers_attribute("vectors_per_class", {most, most}), numbers_attribute("rho", {0})},
       0,
       20,
       "ai.onnx.ml"},
  };
}

TEST(OnnxHostileOperators, EachIsATypedErrorAtOnce) {
  for (const auto& family : {sizes_and_lists(), choices(), loops()}) {
    for (const Case& c : family) {
      SCOPED_TRACE(c.op);
      const std::clock_t begin = std::clock();
      EXPECT_THROW(outputs_of(c), Error) << c.name;
      EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, 20.0) << c.name;
    }
  }
}

TEST(OnnxHostileOperators, UnusualOnesAreRight) {
  EXPECT_EQ(output_of({"a step of the least number",
                       "Slice",
                       {integers("a", {3}, {1, 2, 3}), integers("b", {1}, {-1}), integers("c", {1}, {least}), integers("d", {1}, {0}),
                        integers("e", {1}, {least})}})
                .tolist<int64_t>(),
            (std::vector<int64_t>{3}));
  EXPECT_EQ(
      output_of({"the same on the device",
                 "Slice",
                 {x({3}), integers("b", {1}, {-1}), integers("c", {1}, {least}), integers("d", {1}, {0}), integers("e", {1}, {least})}})
          .tolist<float>(),
      (std::vector<float>{2}));
  EXPECT_EQ(output_of({"a scalar", "NonZero", {floats("a", {}, {3})}}).tolist<int64_t>(), (std::vector<int64_t>{0}));
  EXPECT_EQ(output_of({"no elements in each", "Unique", {floats("a", {2, 0}, {})}, {integer_attribute("axis", 0)}}).shape(), (Sizes{1, 0}));
  EXPECT_EQ(output_of({"numbers that are none", "Unique", {floats("a", {4}, {nan, 1, nan, 0})}}).numel(), 3);
  EXPECT_EQ(output_of({"a window longer than the axis", "MaxPool", {x({1, 1, 1})}, {integers_attribute("kernel_shape", {2})}}).shape(),
            (Sizes{1, 1, 0}));
  EXPECT_EQ(output_of({"more channels than there are", "LRN", {floats("a", {1, 1}, {0})}, {integer_attribute("size", int64_t{1} << 40)}})
                .tolist<float>(),
            (std::vector<float>{0}));
  EXPECT_TRUE(std::isnan(output_of({"a number that is none", "Max", {floats("a", {}, {1}), floats("b", {}, {nan})}}).item<float>()));
  EXPECT_EQ(output_of({"the type of the default",
                       "QuantizeLinear",
                       {floats("a", {2}, {1, 2}), floats("b", {}, {1})},
                       {integer_attribute("output_dtype", 0)},
                       0,
                       21})
                .dtype(),
            DType::uint8);
  const std::string a(3000, 'a');
  EXPECT_EQ(output_of({"a pattern that would be tried without end",
                       "RegexFullMatch",
                       {texts("a", {2}, {a, a + "b"})},
                       {text_attribute("pattern", "(a+)+b")}})
                .tolist<int64_t>(),
            (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(output_of({"a letter of two bytes", "RegexFullMatch", {texts("a", {1}, {"\xc3\xa9"})}, {text_attribute("pattern", ".")}})
                .tolist<int64_t>(),
            (std::vector<int64_t>{1}));
  const Value split = outputs_of({"a negative number of cuts",
                                  "StringSplit",
                                  {texts("a", {1}, {"a,b"})},
                                  {text_attribute("delimiter", ","), integer_attribute("maxsplit", -1)}})
                          .at("y");
  EXPECT_EQ(split.strings().values, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(
      outputs_of({"texts as texts", "Cast", {texts("a", {1}, {"no number"})}, {integer_attribute("to", 8)}}).at("y").strings().values[0],
      "no number");
}

/// What a graph takes from around it decides what is computed anew.
TEST(OnnxHostileOperators, OuterValuesOfGraphsAreNoConstants) {
  const std::string inside = body({node("Add", {"x", "x"}, {"s"})}, {"i", "c"}, {"c", "s"});
  const GraphParts g{.nodes = {node("Loop", {"n", ""}, {"y"}, {graph_attribute("body", inside)})},
                     .initializers = {integers("n", {}, {2})},
                     .inputs = {value_info("x", {1})},
                     .outputs = {message(1, "y")}};
  const std::string bytes = model(g);
  const Model m = load(Tensor(std::vector<uint8_t>(bytes.begin(), bytes.end())));
  for (float x_now : {1.0F, 2.0F, 3.0F, 4.0F}) {
    const Values out = m.run({{"x", Tensor(std::vector<float>{x_now})}});
    EXPECT_EQ(out.at("y").tensor().tolist<float>(), (std::vector<float>{2 * x_now, 2 * x_now}));
  }
}

}  // namespace
}  // namespace tinygrad::onnx::test
