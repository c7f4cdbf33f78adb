#include "bench/works.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "bench/exact.h"

namespace tinygrad::apps {

namespace {

Tensor random_normal(const Sizes& shape, DType dtype) { return Tensor::randn(shape).cast(dtype).realize(); }

Tensor random_integers(const Sizes& shape, int64_t low, int64_t high, DType dtype) {
  return Tensor::randint(shape, low, high).cast(dtype).realize();
}

BenchWork matmul(const BenchCase& c) {
  const int64_t m = c.size[0], n = c.size[1], k = c.size[2];
  const auto shape = [&](int64_t rows, int64_t columns) { return c.batch == 1 ? Sizes{rows, columns} : Sizes{c.batch, rows, columns}; };
  BenchWork work;
  if (c.dtype == DType::int8) {
    work.inputs = {random_integers(shape(m, k), 0, 256, DType::uint8), random_integers(shape(k, n), -128, 128, DType::int8)};
    work.step = [](const Tensors& t) { return Tensors{t[0].matmul(t[1], DType::int32)}; };
  } else {
    work.inputs = {random_normal(shape(m, k), c.dtype), random_normal(shape(k, n), c.dtype)};
    work.step = [](const Tensors& t) { return Tensors{t[0].matmul(t[1])}; };
  }
  return work;
}

BenchWork matvec(const BenchCase& c) {
  return {.inputs = {random_normal(c.size, c.dtype), random_normal({c.size[1]}, c.dtype)},
          .step = [](const Tensors& t) { return Tensors{t[0].matmul(t[1])}; }};
}

BenchWork conv(const BenchCase& c) {
  const int64_t in = c.size[0], out = c.size[1], image = c.size[2], window = c.size[3];
  const ConvOptions options{.groups = c.groups, .stride = {c.stride}, .padding = {window / 2}};
  BenchWork work;
  work.inputs = {random_normal({c.batch, in, image, image}, c.dtype), random_normal({out, in / c.groups, window, window}, c.dtype)};
  if (c.backward) work.inputs.push_back(random_normal({c.batch, out, c.image_out(), c.image_out()}, c.dtype));
  work.step = [options, backward = c.backward](const Tensors& t) {
    Tensors results{t[0].conv2d(t[1], {}, options)};
    if (!backward) return Tensors{results[0].contiguous()};
    for (const Tensor& g : results[0].gradient({t[0], t[1]}, t[2])) results.push_back(g.contiguous());
    results[0] = results[0].contiguous();
    return results;
  };
  return work;
}

BenchWork attention(const BenchCase& c) {
  const Sizes queries{c.batch, c.size[0], c.size[1], c.size[2]}, keys{c.batch, c.kv_heads, c.keys, c.size[2]};
  BenchWork work;
  for (const Sizes& shape : {queries, keys, keys}) work.inputs.push_back(random_normal(shape, c.dtype));
  if (c.backward) work.inputs.push_back(random_normal(queries, c.dtype));
  const AttentionOptions options{.is_causal = c.causal, .enable_gqa = c.kv_heads != c.size[0]};
  work.step = [options, backward = c.backward](const Tensors& t) {
    Tensors results{t[0].scaled_dot_product_attention(t[1], t[2], options)};
    if (backward)
      for (const Tensor& g : results[0].gradient({t[0], t[1], t[2]}, t[3])) results.push_back(g);
    return results;
  };
  return work;
}

Tensor apply(const std::string& op, const Tensors& t) {
  if (op == "relu_fma") return (t[0] * t[1] + t[2]).relu();
  if (op == "add") return t[0] + t[1];
  if (op == "mul") return t[0] * t[1];
  if (op == "relu") return t[0].relu();
  if (op == "exp") return t[0].exp();
  if (op == "log") return t[0].log();
  if (op == "sin") return t[0].sin();
  if (op == "erf") return t[0].erf();
  if (op == "gelu") return t[0].gelu();
  if (op == "sigmoid") return t[0].sigmoid();
  if (op == "tanh") return t[0].tanh();
  return t[0].sqrt();
}

BenchWork elementwise(const BenchCase& c) {
  const int count = c.op == "relu_fma" ? 3 : c.op == "add" || c.op == "mul" ? 2 : 1;
  BenchWork work;
  for (int i = 0; i < count; ++i) work.inputs.push_back(random_normal(c.size, c.dtype));
  if (c.op == "log" || c.op == "sqrt") work.inputs[0] = (work.inputs[0].abs() + 0.001).realize();
  work.step = [op = c.op](const Tensors& t) { return Tensors{apply(op, t)}; };
  return work;
}

/// Numbers of one sign: their sum is not the small difference of two large ones.
BenchWork sum(const BenchCase& c) {
  return {.inputs = {Tensor::rand(c.size).cast(c.dtype).realize()}, .step = [](const Tensors& t) { return Tensors{t[0].sum()}; }};
}

BenchWork one_input(const BenchCase& c, std::function<Tensor(const Tensor&)> f) {
  return {.inputs = {random_normal(c.size, c.dtype)}, .step = [f = std::move(f)](const Tensors& t) { return Tensors{f(t[0])}; }};
}

BenchWork graph_of(const BenchCase& c) {
  if (c.kernel == "matmul") return matmul(c);
  if (c.kernel == "matvec") return matvec(c);
  if (c.kernel == "conv") return conv(c);
  if (c.kernel == "attention") return attention(c);
  if (c.kernel == "elementwise") return elementwise(c);
  if (c.kernel == "sum") return sum(c);
  if (c.kernel == "softmax") return one_input(c, [axis = c.axis](const Tensor& x) { return x.softmax(axis); });
  if (c.kernel == "layernorm") return one_input(c, [](const Tensor& x) { return x.layernorm(); });
  return one_input(c, [order = c.order](const Tensor& x) { return x.permute(order).contiguous(); });
}

/// Half of the distance from 1 to the next number.
double rounding(DType dtype) {
  switch (dtype) {
    case DType::bfloat16: return std::ldexp(1.0, -8);
    case DType::float16: return std::ldexp(1.0, -11);
    default: return std::ldexp(1.0, -24);
  }
}

}  // namespace

BenchWork make_work(const BenchCase& c) {
  BenchWork work = graph_of(c);
  work.exact = [c, inputs = work.inputs] { return exact_values(c, inputs); };
  return work;
}

Accuracy check_accuracy(const BenchCase& c, const BenchWork& work, const Tensors& results) {
  std::vector<Values> got;
  for (const Tensor& r : results) got.emplace_back(r);
  Accuracy accuracy;
  // A result of integers is exact; what is rounded to two bytes is off by that, and sums by what adding in some order may cost.
  if (c.dtype != DType::int8) accuracy.tolerance = 16 * rounding(c.dtype) + 16 * rounding(DType::float32) * std::sqrt(double(c.depth));
  const std::vector<ExactValue> exact = work.exact();
  accuracy.values = exact.size();
  for (size_t output = 0; output < results.size(); ++output) {
    double squares = 0, count = 0;
    for (const ExactValue& e : exact)
      if (e.output == output) squares += e.value * e.value, ++count;
    const double typical = std::sqrt(squares / std::max(count, 1.0));
    for (const ExactValue& e : exact) {
      if (e.output != output) continue;
      const double difference = std::abs(got[output][e.index] - e.value);
      if (difference == 0) continue;
      const double error = difference / std::max({typical, std::abs(e.value), 1e-30});
      accuracy.error = std::isnan(error) ? INFINITY : std::max(accuracy.error, error);
    }
  }
  return accuracy;
}

}  // namespace tinygrad::apps
