#include "bench/exact.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace tinygrad::apps {

Values::Values(const Tensor& tensor) : dtype_(tensor.dtype()), size_(tensor.numel()) {
  const bool as_it_is = dtype_ == DType::uint8 || dtype_ == DType::int8 || dtype_ == DType::int32 || dtype_ == DType::float32;
  if (!as_it_is) dtype_ = DType::float32;
  bytes_ = (as_it_is ? tensor : tensor.cast(DType::float32)).host_memory();
}

namespace {

using Read = std::vector<Values>;

/// `value` at places of an output of `count` elements: at all of them if each costs little, else at random ones.
std::vector<ExactValue> sampled(int64_t count, double cost_each, const std::function<double(int64_t)>& value) {
  constexpr double affordable = 2e8;
  const auto most = int64_t(std::max(64.0, affordable / cost_each / 4));
  std::vector<ExactValue> all;
  if (count <= std::min<int64_t>(most, 1 << 20)) {
    for (int64_t i = 0; i < count; ++i) all.push_back({0, i, value(i)});
    return all;
  }
  std::mt19937_64 random(1);
  const int64_t some = std::min<int64_t>(most, 1 << 16);
  for (int64_t s = 0; s < some; ++s) {
    const auto i = int64_t(random() % uint64_t(count));
    all.push_back({0, i, value(i)});
  }
  all.push_back({0, 0, value(0)});
  all.push_back({0, count - 1, value(count - 1)});  // tails are where kernels go wrong
  return all;
}

std::vector<ExactValue> matmul(const BenchCase& c, const Read& in) {
  const int64_t m = c.size[0], n = c.size[1], k = c.size[2];
  return sampled(c.batch * m * n, double(k), [&](int64_t i) {
    const int64_t b = i / (m * n), row = i / n % m, column = i % n;
    double total = 0;
    for (int64_t j = 0; j < k; ++j) total += in[0][(b * m + row) * k + j] * in[1][(b * k + j) * n + column];
    return total;
  });
}

std::vector<ExactValue> matvec(const BenchCase& c, const Read& in) {
  const int64_t n = c.size[1];
  return sampled(c.size[0], double(n), [&](int64_t row) {
    double total = 0;
    for (int64_t j = 0; j < n; ++j) total += in[0][row * n + j] * in[1][j];
    return total;
  });
}

std::vector<ExactValue> conv(const BenchCase& c, const Read& in) {
  const int64_t channels = c.size[0], filters = c.size[1], image = c.size[2], window = c.size[3], side = c.image_out();
  const int64_t deep = channels / c.groups, wide = filters / c.groups;
  return sampled(c.batch * filters * side * side, double(deep * window * window), [&](int64_t i) {
    const int64_t b = i / (filters * side * side), f = i / (side * side) % filters, y = i / side % side, x = i % side;
    double total = 0;
    for (int64_t d = 0; d < deep; ++d)
      for (int64_t v = 0; v < window; ++v)
        for (int64_t u = 0; u < window; ++u) {
          const int64_t row = y * c.stride + v - window / 2, column = x * c.stride + u - window / 2;
          if (row < 0 || row >= image || column < 0 || column >= image) continue;
          total += in[0][((b * channels + f / wide * deep + d) * image + row) * image + column] *
                   in[1][((f * deep + d) * window + v) * window + u];
        }
    return total;
  });
}

/// One head of attention with its gradients.
struct Head {
  int64_t tokens, width, start;  ///< of its elements
  const Read& in;
  bool causal;
  std::vector<double> weights, d_scores;  ///< (tokens, tokens)

  double at(size_t input, int64_t token, int64_t i) const { return in[input][start + token * width + i]; }
  int64_t attended(int64_t token) const { return causal ? token + 1 : tokens; }
  double dot(size_t a, int64_t token_a, size_t b, int64_t token_b) const {
    double total = 0;
    for (int64_t i = 0; i < width; ++i) total += at(a, token_a, i) * at(b, token_b, i);
    return total;
  }
  void weigh() {
    weights.assign(size_t(tokens * tokens), 0);
    for (int64_t q = 0; q < tokens; ++q) {
      double* row = &weights[size_t(q * tokens)];
      double highest = -INFINITY, total = 0;
      for (int64_t k = 0; k < attended(q); ++k) highest = std::max(highest, row[k] = dot(0, q, 1, k) / std::sqrt(double(width)));
      for (int64_t k = 0; k < attended(q); ++k) total += row[k] = std::exp(row[k] - highest);
      for (int64_t k = 0; k < attended(q); ++k) row[k] /= total;
    }
  }
  void differentiate() {
    d_scores.assign(weights.size(), 0);
    for (int64_t q = 0; q < tokens; ++q) {
      const double* p = &weights[size_t(q * tokens)];
      double* d = &d_scores[size_t(q * tokens)];
      double mean = 0;
      for (int64_t k = 0; k < attended(q); ++k) mean += p[k] * (d[k] = dot(3, q, 2, k));
      for (int64_t k = 0; k < attended(q); ++k) d[k] = p[k] * (d[k] - mean) / std::sqrt(double(width));
    }
  }
  /// Sum over tokens of matrix (or its transpose) row `token` times an input's column.
  double weighted(const std::vector<double>& matrix, bool transposed, size_t input, int64_t token, int64_t i) const {
    double total = 0;
    for (int64_t t = 0; t < tokens; ++t) total += matrix[size_t(transposed ? t * tokens + token : token * tokens + t)] * at(input, t, i);
    return total;
  }
};

std::vector<ExactValue> attention(const BenchCase& c, const Read& in) {
  const int64_t tokens = c.size[1], width = c.size[2], heads = c.batch * c.size[0];
  std::vector<ExactValue> all;
  Head head{
      .tokens = tokens, .width = width, .start = (heads - 1) * tokens * width, .in = in, .causal = c.causal, .weights = {}, .d_scores = {}};
  head.weigh();
  if (c.backward) head.differentiate();
  std::mt19937_64 random(1);
  const int64_t samples = std::min<int64_t>(tokens * width, 4096);
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t i = samples < tokens * width ? int64_t(random() % uint64_t(tokens * width)) : s;
    const int64_t token = i / width, column = i % width;
    all.push_back({0, head.start + i, head.weighted(head.weights, false, 2, token, column)});
    if (!c.backward) continue;
    all.push_back({1, head.start + i, head.weighted(head.d_scores, false, 1, token, column)});
    all.push_back({2, head.start + i, head.weighted(head.d_scores, true, 0, token, column)});
    all.push_back({3, head.start + i, head.weighted(head.weights, true, 3, token, column)});
  }
  return all;
}

std::vector<ExactValue> softmax(const BenchCase& c, const Read& in) {
  const int64_t rows = c.size[0], columns = c.size[1];
  const int64_t length = c.axis == 0 ? rows : columns, step = c.axis == 0 ? columns : 1;
  return sampled(rows * columns, 10 * double(length), [&](int64_t i) {
    const int64_t first = c.axis == 0 ? i % columns : i / columns * columns;
    double total = 0;  // normal numbers: their powers cannot overflow
    for (int64_t j = 0; j < length; ++j) total += std::exp(in[0][first + j * step]);
    return std::exp(in[0][i]) / total;
  });
}

std::vector<ExactValue> layernorm(const BenchCase& c, const Read& in) {
  const int64_t columns = c.size[1];
  return sampled(c.size[0] * columns, 2 * double(columns), [&](int64_t i) {
    const int64_t first = i / columns * columns;
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < columns; ++j) mean += in[0][first + j] / double(columns);
    for (int64_t j = 0; j < columns; ++j) variance += std::pow(in[0][first + j] - mean, 2) / double(columns);
    return (in[0][i] - mean) / std::sqrt(variance + 1e-5);
  });
}

double apply(const std::string& op, const Read& in, int64_t i) {
  const double x = in[0][i];
  if (op == "relu_fma") return std::max(0.0, x * in[1][i] + in[2][i]);
  if (op == "add") return x + in[1][i];
  if (op == "mul") return x * in[1][i];
  if (op == "relu") return std::max(0.0, x);
  if (op == "exp") return std::exp(x);
  if (op == "log") return std::log(x);
  if (op == "sin") return std::sin(x);
  if (op == "erf") return std::erf(x);
  if (op == "gelu") return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  if (op == "sigmoid") return 1 / (1 + std::exp(-x));
  if (op == "tanh") return std::tanh(x);
  return std::sqrt(x);
}

std::vector<ExactValue> sum(const BenchCase& c, const Read& in) {
  double total = 0, lost = 0;  // of float64 too much would be lost over many millions
  for (int64_t i = 0; i < c.size[0]; ++i) {
    const double term = in[0][i] - lost, next = total + term;
    lost = next - total - term;
    total = next;
  }
  return {{0, 0, total}};
}

std::vector<ExactValue> transpose(const BenchCase& c, const Read& in) {
  std::vector<int64_t> strides(c.size.size(), 1);
  for (size_t i = c.size.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * c.size[i + 1];
  return sampled(in[0].size(), 10, [&](int64_t i) {
    int64_t from = 0;
    for (size_t o = c.order.size(); o-- > 0;) {
      const auto axis = size_t(c.order[o]);
      from += i % c.size[axis] * strides[axis];
      i /= c.size[axis];
    }
    return in[0][from];
  });
}

}  // namespace

std::vector<ExactValue> exact_values(const BenchCase& c, const Tensors& inputs) {
  Read in;
  for (const Tensor& t : inputs) in.emplace_back(t);
  if (c.kernel == "matmul") return matmul(c, in);
  if (c.kernel == "matvec") return matvec(c, in);
  if (c.kernel == "conv") return conv(c, in);
  if (c.kernel == "attention") return attention(c, in);
  if (c.kernel == "softmax") return softmax(c, in);
  if (c.kernel == "layernorm") return layernorm(c, in);
  if (c.kernel == "sum") return sum(c, in);
  if (c.kernel == "transpose") return transpose(c, in);
  return sampled(c.size[0], 20, [&](int64_t i) { return apply(c.op, in, i); });
}

}  // namespace tinygrad::apps
