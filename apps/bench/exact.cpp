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

/// A convolution's sizes, and the places that its windows read.
struct Windows {
  int64_t batch, channels, filters, image, window, side, stride, deep,
      wide;  ///< side: of the result; deep, wide: channels and filters a group

  explicit Windows(const BenchCase& c)
      : batch(c.batch),
        channels(c.size[0]),
        filters(c.size[1]),
        image(c.size[2]),
        window(c.size[3]),
        side(c.image_out()),
        stride(c.stride),
        deep(channels / c.groups),
        wide(filters / c.groups) {}

  /// Where element `w` of the window at `out` reads, or -1 in the padding.
  int64_t read(int64_t out, int64_t w) const {
    const int64_t at = out * stride + w - window / 2;
    return at >= 0 && at < image ? at : -1;
  }
  /// The result whose element `w` of the window reads `at`, or -1.
  int64_t reader(int64_t at, int64_t w) const {
    const int64_t scaled = at - w + window / 2;
    return scaled >= 0 && scaled % stride == 0 && scaled / stride < side ? scaled / stride : -1;
  }
};

double conv_of_pixel(const Windows& s, const Read& in, int64_t i) {
  const int64_t b = i / (s.filters * s.side * s.side), f = i / (s.side * s.side) % s.filters, y = i / s.side % s.side, x = i % s.side;
  double total = 0;
  for (int64_t d = 0; d < s.deep; ++d)
    for (int64_t v = 0; v < s.window; ++v)
      for (int64_t u = 0; u < s.window; ++u) {
        const int64_t row = s.read(y, v), column = s.read(x, u);
        if (row < 0 || column < 0) continue;
        total += in[0][((b * s.channels + f / s.wide * s.deep + d) * s.image + row) * s.image + column] *
                 in[1][((f * s.deep + d) * s.window + v) * s.window + u];
      }
  return total;
}

/// Of the image, where in[2] is the gradient of the result.
double conv_gradient_of_image(const Windows& s, const Read& in, int64_t i) {
  const int64_t b = i / (s.channels * s.image * s.image), channel = i / (s.image * s.image) % s.channels, y = i / s.image % s.image,
                x = i % s.image, group = channel / s.deep;
  double total = 0;
  for (int64_t f = group * s.wide; f < (group + 1) * s.wide; ++f)
    for (int64_t v = 0; v < s.window; ++v)
      for (int64_t u = 0; u < s.window; ++u) {
        const int64_t row = s.reader(y, v), column = s.reader(x, u);
        if (row < 0 || column < 0) continue;
        total += in[2][((b * s.filters + f) * s.side + row) * s.side + column] *
                 in[1][((f * s.deep + channel % s.deep) * s.window + v) * s.window + u];
      }
  return total;
}

double conv_gradient_of_weight(const Windows& s, const Read& in, int64_t i) {
  const int64_t u = i % s.window, v = i / s.window % s.window, d = i / (s.window * s.window) % s.deep,
                f = i / (s.window * s.window * s.deep), channel = f / s.wide * s.deep + d;
  double total = 0;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t y = 0; y < s.side; ++y)
      for (int64_t x = 0; x < s.side; ++x) {
        const int64_t row = s.read(y, v), column = s.read(x, u);
        if (row < 0 || column < 0) continue;
        total +=
            in[2][((b * s.filters + f) * s.side + y) * s.side + x] * in[0][((b * s.channels + channel) * s.image + row) * s.image + column];
      }
  return total;
}

std::vector<ExactValue> conv(const BenchCase& c, const Read& in) {
  const Windows s(c);
  const auto area = double(s.window * s.window);
  std::vector<ExactValue> all;
  const auto add = [&](size_t output, int64_t count, double cost_each, double (*value)(const Windows&, const Read&, int64_t)) {
    for (const ExactValue& e : sampled(count, cost_each, [&](int64_t i) { return value(s, in, i); }))
      all.push_back({output, e.index, e.value});
  };
  add(0, s.batch * s.filters * s.side * s.side, double(s.deep) * area, conv_of_pixel);
  if (!c.backward) return all;
  add(1, s.batch * s.channels * s.image * s.image, double(s.wide) * area, conv_gradient_of_image);
  add(2, s.filters * s.deep * s.window * s.window, double(s.batch * s.side * s.side), conv_gradient_of_weight);
  return all;
}

/// One head of queries, with its gradients.
struct Head {
  int64_t tokens, keys, width;
  int64_t start, kv_start;  ///< of its elements in the queries, and in keys and values
  const Read& in;
  bool causal;
  std::vector<double> weights = {}, d_scores = {};  ///< (tokens, keys)

  double query(int64_t token, int64_t i) const { return in[0][start + token * width + i]; }
  double key(int64_t token, int64_t i) const { return in[1][kv_start + token * width + i]; }
  double value(int64_t token, int64_t i) const { return in[2][kv_start + token * width + i]; }
  double d_result(int64_t token, int64_t i) const { return in[3][start + token * width + i]; }
  int64_t attended(int64_t token) const { return causal ? std::min(token + 1, keys) : keys; }

  void weigh() {
    weights.assign(size_t(tokens * keys), 0);
    for (int64_t q = 0; q < tokens; ++q) {
      double* row = &weights[size_t(q * keys)];
      double highest = -INFINITY, total = 0;
      for (int64_t k = 0; k < attended(q); ++k) {
        double dot = 0;
        for (int64_t i = 0; i < width; ++i) dot += query(q, i) * key(k, i);
        highest = std::max(highest, row[k] = dot / std::sqrt(double(width)));
      }
      for (int64_t k = 0; k < attended(q); ++k) total += row[k] = std::exp(row[k] - highest);
      for (int64_t k = 0; k < attended(q); ++k) row[k] /= total;
    }
  }
  void differentiate() {
    d_scores.assign(weights.size(), 0);
    for (int64_t q = 0; q < tokens; ++q) {
      const double* p = &weights[size_t(q * keys)];
      double* d = &d_scores[size_t(q * keys)];
      double mean = 0;
      for (int64_t k = 0; k < attended(q); ++k) {
        for (int64_t i = 0; i < width; ++i) d[k] += d_result(q, i) * value(k, i);
        mean += p[k] * d[k];
      }
      for (int64_t k = 0; k < attended(q); ++k) d[k] = p[k] * (d[k] - mean) / std::sqrt(double(width));
    }
  }

  using Element = double (Head::*)(int64_t token, int64_t i) const;
  /// Of a query: the sum over keys of its row of the matrix times a column of theirs.
  double over_keys(const std::vector<double>& matrix, Element element, int64_t token, int64_t i) const {
    double total = 0;
    for (int64_t k = 0; k < keys; ++k) total += matrix[size_t(token * keys + k)] * (this->*element)(k, i);
    return total;
  }
  double over_queries(const std::vector<double>& matrix, Element element, int64_t key, int64_t i) const {
    double total = 0;
    for (int64_t q = 0; q < tokens; ++q) total += matrix[size_t(q * keys + key)] * (this->*element)(q, i);
    return total;
  }
};

/// The last head of keys and all heads of queries that attend to it.
std::vector<Head> last_heads(const BenchCase& c, const Read& in) {
  const int64_t tokens = c.size[1], width = c.size[2], heads = c.batch * c.size[0], kv_heads = c.batch * c.kv_heads;
  std::vector<Head> all;
  for (int64_t h = heads - c.size[0] / c.kv_heads; h < heads; ++h) {
    all.push_back({.tokens = tokens,
                   .keys = c.keys,
                   .width = width,
                   .start = h * tokens * width,
                   .kv_start = (kv_heads - 1) * c.keys * width,
                   .in = in,
                   .causal = c.causal});
    all.back().weigh();
    if (c.backward) all.back().differentiate();
  }
  return all;
}

std::vector<ExactValue> attention(const BenchCase& c, const Read& in) {
  const std::vector<Head> heads = last_heads(c, in);
  const Head& head = heads.back();
  std::vector<ExactValue> all;
  std::mt19937_64 random(1);
  // Calls f(token, i) for all elements of a head, or for random ones.
  const auto sample = [&](int64_t tokens, auto f) {
    const int64_t count = tokens * c.size[2], samples = std::min<int64_t>(count, 4096);
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t at = samples < count ? int64_t(random() % uint64_t(count)) : s;
      f(at / c.size[2], at % c.size[2]);
    }
  };
  const auto place = [&](int64_t start, int64_t token, int64_t i) { return start + token * c.size[2] + i; };
  sample(head.tokens, [&](int64_t token, int64_t i) {
    all.push_back({0, place(head.start, token, i), head.over_keys(head.weights, &Head::value, token, i)});
    if (c.backward) all.push_back({1, place(head.start, token, i), head.over_keys(head.d_scores, &Head::key, token, i)});
  });
  if (!c.backward) return all;
  sample(head.keys, [&](int64_t token, int64_t i) {
    double d_key = 0, d_value = 0;
    for (const Head& h : heads) {
      d_key += h.over_queries(h.d_scores, &Head::query, token, i);
      d_value += h.over_queries(h.weights, &Head::d_result, token, i);
    }
    all.push_back({2, place(head.kv_start, token, i), d_key});
    all.push_back({3, place(head.kv_start, token, i), d_value});
  });
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
