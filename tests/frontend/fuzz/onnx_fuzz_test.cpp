// Damaged ONNX files: each is read, or is an error of the library.
#include <gtest/gtest.h>

#include <random>

#include <tinygrad/errors.h>
#include <tinygrad/onnx.h>

#include "frontend/onnx/model_file.h"
#include "support/test_scale.h"

namespace tinygrad::onnx::test {
namespace {

std::string random_model(std::mt19937_64& random) {
  GraphParts g{.inputs = {value_info("x", {2})}};
  std::vector<std::string> names{"x"};
  const auto some = [&] { return names[random() % names.size()]; };
  for (uint64_t i = 0, count = random() % 5; i < count; ++i) {
    const std::string w = "w" + std::to_string(i);
    switch (random() % 4) {
      case 0: g.initializers.push_back(tensor(w, {2}, 1, "12345678")); break;
      case 1: g.initializers.push_back(number(1, 2) + number(2, 7) + message(8, w) + message(7, "\x01\x7f")); break;
      case 2: g.initializers.push_back(tensor(w, {3}, 22, "ab")); break;
      default: g.initializers.push_back(number(1, 1) + number(2, 8) + message(8, w) + message(6, "text"));
    }
    names.push_back(w);
  }
  for (uint64_t i = 0, count = 1 + random() % 5; i < count; ++i) {
    const std::string out = "n" + std::to_string(i);
    switch (random() % 4) {
      case 0: g.nodes.push_back(node("Add", {some(), some()}, {out})); break;
      case 1: g.nodes.push_back(node("Concat", {some(), some()}, {out}, {integer_attribute("axis", 0)})); break;
      case 2: {
        const GraphParts branch{.nodes = {node("Neg", {some()}, {"b"})}, .outputs = {value_info("b", {2})}};
        g.nodes.push_back(
            node("If", {some()}, {out}, {graph_attribute("then_branch", branch.bytes()), graph_attribute("else_branch", branch.bytes())}));
        break;
      }
      default:
        g.nodes.push_back(node("Constant", {}, {out}, {message(1, "value") + message(5, tensor("t", {1}, 6, "1234")) + number(20, 4)}));
    }
    names.push_back(out);
  }
  g.outputs = {value_info(names.back(), {2})};
  return model(g);
}

void damage(std::string& bytes, std::mt19937_64& random) {
  const size_t at = random() % bytes.size();
  switch (random() % 6) {
    case 0: bytes[at] = char(random()); break;
    case 1: bytes[at] = char(bytes[at] ^ (1 << random() % 8)); break;
    case 2: bytes.resize(at); break;
    case 3: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40)); break;
    case 4: bytes.erase(at, random() % 8); break;
    default: bytes[at] = "\xff\x7f\x80\x00\x01"[random() % 5];
  }
}

TEST(OnnxFuzz, ReadsOrRefuses) {
  std::mt19937_64 random(tinygrad::test::seed());
  int read = 0, refused = 0;
  for (int i = 0; i < 10'000 * tinygrad::test::test_scale(); ++i) {
    std::string file = random_model(random);
    for (uint64_t change = random() % 4; change > 0 && !file.empty(); --change) damage(file, random);
    try {
      load(Tensor(std::vector<uint8_t>(file.begin(), file.end())));
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace tinygrad::onnx::test
