// Random graphs whose inputs differ in sizes: one capture for all of them gives what a capture for each gives.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

#include <tinygrad/errors.h>
#include <tinygrad/onnx.h>

#include "frontend/onnx/model_file.h"
#include "support/test_scale.h"

namespace tinygrad::onnx::test {
namespace {

using Random = std::mt19937_64;

/// A graph of x (batch, rows, 4). Sizes are texts: equal ones are equal for all batches and rows.
class RandomGraph {
 public:
  explicit RandomGraph(Random& random) : random_(random) {}

  std::string bytes(int operators) {
    values_ = {{"x", {"b", "n", "4"}}};
    for (int i = 0; i < operators; ++i) grow();
    GraphParts parts{.nodes = nodes_, .initializers = initializers_, .inputs = {value_info("x", {-1, -1, 4})}};
    for (const Named& v : {values_.back(), some()}) {
      const std::string out = "y" + std::to_string(parts.outputs.size());
      parts.nodes.push_back(node("Identity", {v.name}, {out}));
      parts.outputs.push_back(value_info(out, {}));
    }
    return model(parts, 18);
  }

 private:
  using Dims = std::vector<std::string>;
  struct Named {
    std::string name;
    Dims dims;
  };

  size_t below(size_t n) { return size_t(random_() % n); }
  const Named& some() { return values_[below(values_.size())]; }
  std::string op(std::string_view name, const std::vector<std::string>& inputs, const std::vector<std::string>& attributes = {}) {
    const std::string out = "v" + std::to_string(nodes_.size());
    nodes_.push_back(node(name, inputs, {out}, attributes));
    return out;
  }
  std::string ints(const std::vector<int64_t>& numbers) {
    initializers_.push_back(integers("i" + std::to_string(initializers_.size()), {int64_t(numbers.size())}, numbers));
    return "i" + std::to_string(initializers_.size() - 1);
  }
  std::string scalar(int64_t number) {
    initializers_.push_back(integers("i" + std::to_string(initializers_.size()), {}, {number}));
    return "i" + std::to_string(initializers_.size() - 1);
  }
  std::string weights(const std::vector<int64_t>& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= d;
    std::vector<float> numbers;
    for (int64_t i = 0; i < n; ++i) numbers.push_back(float(below(17)) / 8 - 1);
    initializers_.push_back(floats("w" + std::to_string(initializers_.size()), dims, numbers));
    return "w" + std::to_string(initializers_.size() - 1);
  }
  std::string axis(int64_t a) { return integer_attribute("axis", a); }
  std::string transposed(const std::string& x, const std::vector<int64_t>& order) {
    return op("Transpose", {x}, {integers_attribute("perm", order)});
  }
  /// The size of an axis as a vector of one element.
  std::string size_of(const std::string& x, int64_t a) { return op("Gather", {op("Shape", {x}), ints({a})}, {axis(0)}); }
  void keep(const std::string& name, Dims dims) { values_.push_back({name, std::move(dims)}); }
  std::optional<int64_t> number(const std::string& dim) {
    return dim.find_first_not_of("0123456789") == std::string::npos ? std::optional(int64_t(std::stoll(dim))) : std::nullopt;
  }

  /// One more value, of three axes as all are.
  void grow() {
    const Named v = some();
    const auto& [x, d] = v;
    const auto last = number(d[2]);
    const size_t a = below(3);
    switch (below(20)) {
      case 0: return keep(op(std::vector{"Relu", "Sigmoid", "Tanh", "Neg"}[below(4)], {x}), d);
      case 1: return keep(op("Softmax", {x}, {axis(int64_t(a) - 3)}), d);
      case 2:
        if (!last) return;
        return keep(op("LayerNormalization", {x, weights({*last})}, {axis(-1)}), d);
      case 3: {
        if (!last) return;
        const int64_t columns = int64_t(1 + below(9));
        return keep(op("Tanh", {op("MatMul", {x, weights({*last, columns})})}), {d[0], d[1], std::to_string(columns)});
      }
      case 4: {  // attention
        const std::string scores = op("Softmax", {op("MatMul", {x, transposed(x, {0, 2, 1})})});
        if (below(2)) keep(scores, {d[0], d[1], d[1]});
        return keep(op("MatMul", {scores, x}), d);
      }
      case 5: {
        Dims out = d;
        out[a] = "(" + d[a] + "+" + d[a] + ")";
        return number(d[a]) ? void() : keep(op("Concat", {x, op("Neg", {x})}, {axis(int64_t(a))}), out);
      }
      case 6: {
        Dims out = d;
        out[a] = "(" + d[a] + "-1)";
        const bool front = below(2);
        if (number(d[a])) return;
        return keep(op("Slice", {x, ints({front}), ints({front ? int64_t{1} << 40 : -1}), ints({int64_t(a)})}), out);
      }
      case 7: {
        Dims out = d;
        out[a] = "2";
        return keep(op("Gather", {x, ints({-1, 0})}, {axis(int64_t(a))}), out);
      }
      case 8: {  // one row, as often as there were
        const std::string one = op("Unsqueeze", {op("Gather", {x, scalar(int64_t(below(2)) - 1)}, {axis(1)}), ints({1})});
        return keep(op("Expand", {one, op("Shape", {x})}), d);
      }
      case 9: {  // products of the rows of all batches
        if (!last) return;
        const std::string flat = op("Reshape", {x, ints({-1, *last})});
        const std::string shape = op("Concat", {size_of(x, 0), size_of(x, 1), ints({3})}, {axis(0)});
        return keep(op("Reshape", {op("MatMul", {flat, weights({*last, 3})}), shape}), {d[0], d[1], "3"});
      }
      case 10: {  // there and back
        const std::string flat = op("Reshape", {x, op("Concat", {size_of(x, 0), op("Mul", {size_of(x, 1), size_of(x, 2)})}, {axis(0)})});
        return keep(op("Reshape", {op("Softmax", {flat}), op("Concat", {size_of(x, 0), ints({-1}), size_of(x, 2)}, {axis(0)})}), d);
      }
      case 11: {
        const std::string mean = op(std::vector{"ReduceMean", "ReduceMax", "ReduceSum"}[below(3)], {x, ints({int64_t(a)})});
        return keep(op("Tanh", {op("Sub", {x, mean})}), d);
      }
      case 12:
        return keep(transposed(x, a == 0 ? std::vector<int64_t>{1, 0, 2} : std::vector<int64_t>{0, 2, 1}),
                    a == 0 ? Dims{d[1], d[0], d[2]} : Dims{d[0], d[2], d[1]});
      case 13: {  // over rows, with channels behind them
        if (!last) return;
        const bool same = below(2);
        const std::string y = op("Conv", {transposed(x, {0, 2, 1}), weights({4, *last, 3})},
                                 same ? std::vector{integers_attribute("pads", {1, 1})} : std::vector<std::string>{});
        return keep(op("Tanh", {transposed(y, {0, 2, 1})}), {d[0], same ? d[1] : "(" + d[1] + "-2)", "4"});
      }
      case 14: {
        Named other = some();
        for (int tries = 0; tries < 5 && other.dims != d; ++tries) other = some();
        if (other.dims != d) return;
        const std::string is_less = op("Less", {x, other.name});
        return keep(op("Where", {is_less, x, op("Mul", {other.name, other.name})}), d);
      }
      case 15: {  // positions
        const std::string n = op("Gather", {op("Shape", {x}), scalar(1)}, {axis(0)});
        const std::string places = op("Cast", {op("Range", {scalar(0), n, scalar(1)})}, {integer_attribute("to", 1)});
        return keep(op("Sin", {op("Add", {x, op("Unsqueeze", {places, ints({1})})})}), d);
      }
      case 16: {
        const std::string mask = op("Trilu",
                                    {op("ConstantOfShape", {op("Concat", {size_of(x, 1), size_of(x, 2)}, {axis(0)})},
                                        {message(1, "value") + message(5, floats("one", {1}, {1})) + number_of_kind(4)})},
                                    {integer_attribute("upper", int64_t(below(2)))});
        return keep(op("Mul", {x, mask}), d);
      }
      case 17: {
        Dims out = d;
        out[a] = "(" + d[a] + "+3)";
        if (number(d[a])) return;
        std::vector<int64_t> pads(6, 0);
        pads[a] = 1, pads[3 + a] = 2;
        return keep(op("Pad", {x, ints(pads)}), out);
      }
      case 18: {
        const std::string mean = op(below(2) ? "MaxPool" : "AveragePool", {transposed(x, {0, 2, 1})},
                                    {integers_attribute("kernel_shape", {2}), integers_attribute("pads", {0, 1})});
        return keep(transposed(mean, {0, 2, 1}), d);
      }
      default: {  // every other row
        Dims out = d;
        out[1] = "((" + d[1] + "+1)/2)";
        if (number(d[1])) return;
        return keep(op("Slice", {x, ints({0}), ints({int64_t{1} << 40}), ints({1}), ints({2})}), out);
      }
    }
  }
  static std::string number_of_kind(int64_t kind) { return onnx::test::number(20, kind); }

  Random& random_;
  std::vector<std::string> nodes_, initializers_;
  std::vector<Named> values_;
};

Tensor numbers(int64_t batch, int64_t rows, bool is_view) {
  std::vector<float> values;
  for (int64_t i = 0; i < batch * rows * 4; ++i) values.push_back(std::sin(float(i) * 1.7F) + 0.25F);
  const Tensor t(values, is_view ? Sizes{rows, batch, 4} : Sizes{batch, rows, 4});
  return is_view ? t.transpose(0, 1) : t;
}

using Numbers = std::vector<std::vector<double>>;
/// The elements of the outputs, and nothing where a size does not fit a node.
std::optional<Numbers> elements(const Model& m, const Values& inputs, Values& results) {
  try {
    results = m.run(inputs);
  } catch (const Error&) {
    return {};
  }
  Numbers out;
  for (const auto& [name, value] : results) {
    out.emplace_back();
    for (int64_t s : value.shape()) out.back().push_back(double(s));
    const std::vector<double> values = value.tensor().cast(DType::float32).tolist<double>();
    out.back().insert(out.back().end(), values.begin(), values.end());
  }
  return out;
}

void expect_near(const std::optional<Numbers>& got, const std::optional<Numbers>& wanted) {
  ASSERT_EQ(got.has_value(), wanted.has_value());
  if (!got) return;
  ASSERT_EQ(got->size(), wanted->size());
  for (size_t k = 0; k < got->size(); ++k) {
    ASSERT_EQ((*got)[k].size(), (*wanted)[k].size()) << "output " << k;
    for (size_t i = 0; i < (*got)[k].size(); ++i)
      ASSERT_NEAR((*got)[k][i], (*wanted)[k][i], 2e-4 * std::max(1.0, std::fabs((*wanted)[k][i]))) << "output " << k << ", " << i;
  }
}

TEST(OnnxAnySizeFuzz, GivesWhatEachSizeGives) {
  int computed = 0;
  for (int round = 0; round < 8 * tinygrad::test::test_scale(); ++round) {
    const uint64_t seed = tinygrad::test::seed() + uint64_t(round);
    SCOPED_TRACE("TG_TEST_SEED=" + std::to_string(seed) + " in the first round");
    Random random(seed);
    const std::string file = RandomGraph(random).bytes(int(3 + random() % 6));
    const Tensor bytes(std::vector<uint8_t>(file.begin(), file.end()));
    const Model any = load(bytes), each = load(bytes, {.each_size = true});
    const auto size = [&] { return int64_t(2 + random() % 15); };
    const int64_t same = size();
    const std::pair<int64_t, int64_t> sizes[] = {{size(), size()}, {size(), size()}, {same, same}, {1, size()}, {size(), 1}, {2, 16}};
    std::vector<std::pair<Values, std::optional<Numbers>>> all;
    for (const auto& [batch, rows] : sizes) {
      SCOPED_TRACE(std::to_string(batch) + " by " + std::to_string(rows));
      const Values inputs{{"x", numbers(batch, rows, random() % 2)}};
      Values wanted, got;
      const auto expected = elements(each, inputs, wanted);
      expect_near(elements(any, inputs, got), expected);
      if (HasFatalFailure()) return;
      computed += expected.has_value();
      all.emplace_back(got, expected);
    }
    for (const auto& [results, expected] : all) {  // what a call gave is as it was
      if (!expected) continue;
      size_t k = 0;
      for (const auto& [name, value] : results) {
        const std::vector<double> values = value.tensor().cast(DType::float32).tolist<double>();
        const std::vector<double>& wanted = (*expected)[k++];
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_NEAR(values[i], wanted[value.shape().size() + i], 2e-4 * std::max(1.0, std::fabs(values[i])));
      }
    }
  }
  EXPECT_GT(computed, 0);
}

}  // namespace
}  // namespace tinygrad::onnx::test
