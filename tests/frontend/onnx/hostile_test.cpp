// Bad ONNX files: each is a typed error, at once and without much memory.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include <tinygrad/errors.h>
#include <tinygrad/onnx.h>

#include "frontend/onnx/model_file.h"
#include "support/message_of.h"
#include "support/refusal.h"
#include "support/temp_folder.h"

namespace tinygrad::onnx::test {
namespace {

using tinygrad::test::message_of;
using tinygrad::test::TempFolder;

Model load_bytes(const std::string& bytes) { return load(Tensor(std::vector<uint8_t>(bytes.begin(), bytes.end()))); }

const std::string x_info = value_info("x", {2}), y_info = value_info("y", {2});

GraphParts good() { return {.nodes = {node("Neg", {"x"}, {"y"})}, .inputs = {x_info}, .outputs = {y_info}}; }
/// The graph with another node in front, which has this attribute.
GraphParts with_attribute(const std::string& attribute) {
  GraphParts g = good();
  g.nodes.insert(g.nodes.begin(), node("Constant", {}, {"c"}, {attribute}));
  return g;
}
GraphParts with_initializer(const std::string& t) {
  GraphParts g = good();
  g.initializers = {t};
  return g;
}

std::string nested_if(int depth) {
  GraphParts g{.nodes = {node("Identity", {"x"}, {"z" + std::to_string(depth)})},
               .outputs = {value_info("z" + std::to_string(depth), {2})}};
  for (int i = depth; i-- > 0;) {
    const std::string out = "z" + std::to_string(i);
    g = {.nodes = {node("If", {"c"}, {out}, {graph_attribute("then_branch", g.bytes()), graph_attribute("else_branch", g.bytes())})},
         .outputs = {value_info(out, {2})}};
    if (i % 4 == 0 && g.bytes().size() > 1 << 16) break;
  }
  return g.bytes();
}
/// One branch in another, without a second that doubles the bytes.
std::string nested_messages(int depth) {
  std::string graph;
  for (int i = 0; i < depth; ++i) graph = message(1, node("If", {}, {}, {graph_attribute("g", graph)}));
  return graph;
}
std::string nested_types(int depth) {
  std::string type = message(1, number(1, 1));
  for (int i = 0; i < depth; ++i) type = message(4, message(1, type));
  return message(1, "x") + message(2, type);
}
std::string function(const std::string& name, const std::string& calls) {
  return message(1, name) + message(4, "a") + message(5, "b") + message(7, node(calls, {"a"}, {"b"}, {}, "own")) + message(10, "own") +
         message(9, number(2, 1));
}

struct Bad {
  const char* name;
  std::string bytes;
};

std::vector<Bad> bad_files() {
  const std::string four("\0\0\0\0", 4), eight(8, '\0');
  const std::string whole = model(good());
  GraphParts twice = good(), cycle = good(), unknown_output = good(), same_output = good(), shadow = good();
  twice.initializers = {tensor("w", {1}, 1, four), tensor("w", {1}, 1, four)};
  cycle.nodes = {node("Neg", {"b"}, {"a"}), node("Neg", {"a"}, {"b"}), node("Neg", {"x"}, {"y"})};
  unknown_output.outputs = {value_info("z", {2})};
  same_output.nodes.push_back(node("Abs", {"x"}, {"y"}));
  shadow.nodes.push_back(node("Abs", {"x"}, {"x"}));
  GraphParts two_inputs = good();
  two_inputs.inputs.push_back(x_info);
  GraphParts types = good();
  types.inputs.push_back(nested_types(200));
  GraphParts own_call = good();
  own_call.nodes = {node("f", {"x"}, {"y"}, {}, "own")};
  std::vector<Bad> all{
      {"empty", ""},
      {"one byte", "\x08"},
      {"no graph", number(1, 9) + opset(20)},
      {"text", "This is no model at all."},
      {"a length beyond the end", std::string("\x3a\xff\xff\xff\x7f", 5)},
      {"a length of 64 bits", std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10)},
      {"a varint without end", std::string(11, '\xff')},
      {"field 0", std::string("\x02\x00", 2)},
      {"a wire type that there is not", std::string("\x0f\x00", 2)},
      {"the graph as a number", number(7, 3)},
      {"the version as bytes", message(1, "abc") + message(7, good().bytes())},
      {"a negative opset", number(1, 9) + opset(-3) + message(7, good().bytes())},
      {"a node without operator", number(1, 9) + message(7, message(1, message(1, "x")))},
      {"an empty node", number(1, 9) + message(7, message(1, ""))},
      {"an initializer without name", model(with_initializer(tensor("", {1}, 1, four)))},
      {"an initializer without type", model(with_initializer(message(8, "w")))},
      {"an element type beyond the last", model(with_initializer(tensor("w", {1}, 99, four)))},
      {"a negative element type", model(with_initializer(tensor("w", {1}, -1, four)))},
      {"too few bytes", model(with_initializer(tensor("w", {2}, 1, four)))},
      {"too many bytes", model(with_initializer(tensor("w", {1}, 1, eight)))},
      {"a huge size", model(with_initializer(tensor("w", {int64_t{1} << 60}, 1, four)))},
      {"a negative size", model(with_initializer(tensor("w", {-1}, 1, four)))},
      {"sizes whose product wraps", model(with_initializer(tensor("w", {int64_t{1} << 32, int64_t{1} << 32}, 1, "")))},
      {"sizes whose bits wrap", model(with_initializer(tensor("w", {int64_t{1} << 61}, 11, "")))},
      {"too many axes", model(with_initializer(tensor("w", std::vector<int64_t>(65, 1), 1, four)))},
      {"texts as raw data", model(with_initializer(tensor("w", {1}, 8, four)))},
      {"texts that are missing", model(with_initializer(number(1, 3) + number(2, 8) + message(8, "w")))},
      {"numbers that are missing", model(with_initializer(number(1, 3) + number(2, 1) + message(8, "w")))},
      {"a huge size without data", model(with_initializer(number(1, int64_t{1} << 50) + number(2, 1) + message(8, "w")))},
      {"packed floats of three bytes", model(with_initializer(number(1, 1) + number(2, 1) + message(8, "w") + message(4, "abc")))},
      {"packed varints without end",
       model(with_initializer(number(1, 1) + number(2, 6) + message(8, "w") + message(5, std::string(3, '\xff'))))},
      {"a boolean of 2", model(with_initializer(tensor("w", {1}, 9, "\x02")))},
      {"a boolean of 2 as a number", model(with_initializer(number(1, 1) + number(2, 9) + message(8, "w") + number(5, 2)))},
      {"four bits too few", model(with_initializer(tensor("w", {3}, 22, "\x11")))},
      {"tensors in segments", model(with_initializer(tensor("w", {1}, 1, four) + message(3, number(1, 0))))},
      {"a name twice", model(twice)},
      {"an input twice", model(two_inputs)},
      {"a cycle", model(cycle)},
      {"an output that nothing gives", model(unknown_output)},
      {"an output that two nodes give", model(same_output)},
      {"a node that gives an input", model(shadow)},
      {"an attribute without name", model(with_attribute(number(3, 1) + number(20, 2)))},
      {"an attribute without tensor", model(with_attribute(message(1, "value") + number(20, 4)))},
      {"an attribute without graph", model(with_attribute(message(1, "value") + number(20, 5)))},
      {"an attribute of no kind", model(with_attribute(message(1, "value") + number(3, 1) + number(20, 77)))},
      {"a tensor of an attribute that is too short",
       model(with_attribute(message(1, "value") + message(5, tensor("t", {2}, 1, four)) + number(20, 4)))},
      {"a sparse tensor with an index outside",
       model(with_attribute(message(1, "sparse_value") +
                            message(22, message(1, tensor("t", {1}, 1, four)) +
                                            message(2, tensor("i", {1}, 7, std::string("\x09\0\0\0\0\0\0\0", 8))) + number(3, 4)) +
                            number(20, 11)))},
      {"a sparse tensor that is huge",
       model(with_attribute(
           message(1, "sparse_value") +
           message(22, message(1, tensor("t", {1}, 1, four)) + message(2, tensor("i", {1}, 7, eight)) + number(3, int64_t{1} << 40)) +
           number(20, 11)))},
      {"a sparse tensor without indices",
       model(with_attribute(message(1, "sparse_value") + message(22, message(1, tensor("t", {1}, 1, four))) + number(20, 11)))},
      {"two attributes of one name", model({.nodes = {node("Neg", {"x"}, {"y"}, {integer_attribute("a", 1), integer_attribute("a", 1)})},
                                            .inputs = {x_info},
                                            .outputs = {y_info}})},
      {"graphs within graphs", number(1, 9) + message(7, nested_messages(2000))},
      {"types within types", model(types)},
      {"a function without name", model(good()) + message(25, message(4, "a"))},
      {"a function twice", model(good()) + message(25, function("f", "Neg")) + message(25, function("f", "Neg"))},
      {"a function that calls itself", model(own_call) + message(25, function("f", "f"))},
      {"functions that call one another", model(own_call) + message(25, function("f", "g")) + message(25, function("g", "f"))},
      {"external data of a model in memory", model(with_initializer(external_tensor("w", {1}, {{"location", "w.bin"}})))},
      {"external data without location", model(with_initializer(external_tensor("w", {1}, {})))},
      {"a key twice", model(with_initializer(external_tensor("w", {1}, {{"location", "a"}, {"location", "b"}})))},
  };
  for (size_t i = 1; i < whole.size(); i += 3) all.push_back({"cut off", whole.substr(0, i)});
  return all;
}

TEST(OnnxHostile, EachIsATypedErrorAtOnce) {
  EXPECT_GE(bad_files().size(), 80U);
  for (const Bad& bad : bad_files()) {
    SCOPED_TRACE(bad.name);
    const std::string said = tinygrad::test::refusal_of([&] { load_bytes(bad.bytes); });
    const bool says_where = said.find("byte ") != std::string::npos,
               says_whose = said.find('\'') != std::string::npos || said.find("function") != std::string::npos;
    EXPECT_TRUE(says_where || says_whose) << said;  // what is wrong between nodes has no byte
  }
}

TEST(OnnxHostile, ErrorsNameWhereAndWhat) {
  const std::string what = message_of<FormatError>([] { load_bytes(model(with_initializer(tensor("weights", {3}, 1, "1234")))); });
  EXPECT_NE(what.find("byte "), std::string::npos) << what;
  EXPECT_NE(what.find("'weights', float32 (3)"), std::string::npos) << what;
  EXPECT_NE(what.find("4 bytes, expected 12"), std::string::npos) << what;
}

TEST(OnnxHostile, BranchesThatDoubleAreRead) {
  GraphParts g = good();
  g.inputs.push_back(value_info("c", {}, 9));
  g.nodes.push_back(node("If", {"c"}, {"z"}, {graph_attribute("then_branch", nested_if(6)), graph_attribute("else_branch", nested_if(6))}));
  EXPECT_NO_THROW(load_bytes(model(g)));
}

TEST(OnnxHostile, ManyNodesWithGraphsTakeLinearTime) {
  GraphParts g = good();
  g.inputs.push_back(value_info("c", {}, 9));
  for (int i = 0; i < 5000; ++i) {
    const std::string out = "z" + std::to_string(i);
    const GraphParts branch{.nodes = {node("Neg", {"x"}, {"b"})}, .outputs = {value_info("b", {2})}};
    g.nodes.push_back(
        node("If", {"c"}, {out}, {graph_attribute("then_branch", branch.bytes()), graph_attribute("else_branch", branch.bytes())}));
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NO_THROW(load_bytes(model(g)));
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 5.0);
}

TEST(OnnxHostile, FunctionsThatDoubleEnd) {
  std::string bytes;
  for (int i = 0; i < 40; ++i) {
    const std::string next = i == 39 ? "Neg" : "f" + std::to_string(i + 1), domain = i == 39 ? "" : "own";
    bytes += message(25, message(1, "f" + std::to_string(i)) + message(4, "a") + message(5, "c") +
                             message(7, node(next, {"a"}, {"b"}, {}, domain)) + message(7, node(next, {"b"}, {"c"}, {}, domain)) +
                             message(10, "own") + message(9, number(2, 20)));
  }
  const GraphParts g{.nodes = {node("f30", {"x"}, {"y"}, {}, "own")}, .inputs = {x_info}, .outputs = {y_info}};
  const Model m = load_bytes(model(g) + bytes);
  EXPECT_EQ(m({{"x", Tensor{1.0F, 2.0F}}}).at("y").tensor().tolist(), (std::vector<float>{1, 2}));
}

TEST(OnnxHostile, WhatIsUnsupportedIsListedWhole) {
  const GraphParts g{
      .nodes = {node("Nonsense", {"x"}, {"a"}), node("Other", {"a"}, {"b"}, {}, "own.domain"), node("Nonsense", {"b"}, {"y"})},
      .inputs = {x_info},
      .outputs = {y_info}};
  try {
    load_bytes(model(g));
    FAIL();
  } catch (const UnsupportedError& e) {
    ASSERT_EQ(e.operators().size(), 2U);
    EXPECT_EQ(e.operators()[0].name, "Nonsense");
    EXPECT_EQ(e.operators()[0].version, 20);
    EXPECT_EQ(e.operators()[0].nodes, (std::vector<std::string>{"a", "y"}));
    EXPECT_EQ(e.operators()[1].domain, "own.domain");
  }
  EXPECT_THROW(load_bytes(model(good(), 99)), UnsupportedError);
}

TEST(OnnxHostile, ExternalDataStaysInItsFolder) {
  const TempFolder folder;
  folder.write("secret.bin", "abcdefgh");
  std::filesystem::create_directory(folder.path("models"));
  std::filesystem::create_symlink(folder.path("secret.bin"), folder.path("models/link.bin"));
  std::filesystem::create_directory_symlink(folder.path(), folder.path("models/up"));
  folder.write("models/own.bin", "abcdefgh");
  const auto load_at = [&](const std::vector<std::pair<std::string, std::string>>& where, bool follows = false) {
    return load(folder.write("models/m.onnx", model(with_initializer(external_tensor("w", {1}, where)))), {.follow_links = follows});
  };
  for (const char* bad : {"../secret.bin", "a/../../secret.bin", "/etc/passwd", "link.bin", "up/secret.bin", "", "."})
    EXPECT_ANY_THROW(load_at({{"location", bad}})) << bad;
  for (const char* bad : {"../secret.bin", "/etc/passwd", "link.bin"}) EXPECT_THROW(load_at({{"location", bad}}), FormatError) << bad;
  EXPECT_THROW(load_at({{"location", "absent.bin"}}), IoError);
  for (const auto& [key, value] :
       {std::pair("offset", "8"), std::pair("offset", "-4"), std::pair("offset", "99999999999999999999"), std::pair("offset", "4x"),
        std::pair("length", "3"), std::pair("length", "8"), std::pair("offset", "9223372036854775807")})
    EXPECT_THROW(load_at({{"location", "own.bin"}, {key, value}}), FormatError) << key << " " << value;
  EXPECT_NO_THROW(load_at({{"location", "own.bin"}, {"offset", "4"}, {"length", "4"}}));
  EXPECT_NO_THROW(load_at({{"location", "link.bin"}}, true));
  EXPECT_THROW(load_at({{"location", "../secret.bin"}}, true), FormatError);
}

}  // namespace
}  // namespace tinygrad::onnx::test
