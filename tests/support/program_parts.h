#pragma once
/// What test programs are made of.

#include <functional>
#include <string_view>
#include <vector>

#include "ops/activation.h"
#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/index.h"
#include "ops/movement.h"
#include "ops/nn.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "uop/build.h"

namespace tinygrad::test_programs {

using namespace ops;

struct Program {
  std::string_view name;
  std::function<std::vector<UOp>()> build;  ///< what it stores
};
using Programs = std::vector<Program>;
using Stores = std::vector<UOp>;

/// Where the programs are built.
inline Symbol& device() {
  static Symbol name("CPU");
  return name;
}

/// A tensor on memory of its own.
inline UOp tensor(const Shape& shape, DType dtype = DType::float32) {
  const int64_t size = numel(shape).value();
  return ops::reshape(buffer(dtype, {.id = next_buffer_id(), .size = size, .device = device()}), shape);
}

/// A value stored into fresh memory.
inline UOp output(const UOp& value) { return tinygrad::store(tensor(shape_of(value), value.dtype()), value); }
inline Stores outputs(std::initializer_list<UOp> values) {
  Stores out;
  for (const UOp& v : values) out.push_back(output(v));
  return out;
}

/// A tensor after it was given a value.
inline UOp assigned(const UOp& to, const UOp& value) { return tinygrad::after(to, UOps{tinygrad::store(to, value)}); }

inline UOp scalar_one() { return constant(DType::float32, 1.0); }

inline std::vector<UOp> gradients(const UOp& loss, const std::vector<UOp>& parameters) {
  return ops::gradient(loss, ops::full_like(loss, 1.0), parameters);
}

inline Stores sgd(const UOp& loss, const std::vector<UOp>& parameters) {
  const std::vector<UOp> g = gradients(loss, parameters);
  const UOp rate = tensor({1});
  Stores out{output(loss)};
  for (size_t i = 0; i < g.size(); ++i) {
    const UOp step = mul(g[i], broadcast_to(rate, shape_of(g[i])));
    out.push_back(assigned(parameters[i], sub(parameters[i], step)));
  }
  return out;
}

inline Stores sgd_with_momentum(const UOp& loss, const std::vector<UOp>& parameters) {
  const std::vector<UOp> g = gradients(loss, parameters);
  const UOp rate = tensor({1});
  Stores out{output(loss)};
  for (size_t i = 0; i < g.size(); ++i) {
    const UOp b = tensor(shape_of(g[i]));
    const UOp momentum = assigned(b, add(mul(b, 0.9), g[i]));
    out.push_back(momentum);
    out.push_back(assigned(parameters[i], sub(parameters[i], mul(momentum, broadcast_to(rate, shape_of(g[i]))))));
  }
  return out;
}

inline Stores adam_update(const std::vector<UOp>& parameters, const std::vector<UOp>& g) {
  const UOp rate = tensor({1}), b1 = tensor({1}), b2 = tensor({1});
  const UOp b1_now = assigned(b1, mul(b1, 0.9)), b2_now = assigned(b2, mul(b2, 0.999));
  Stores out{b1_now, b2_now};
  for (size_t i = 0; i < g.size(); ++i) {
    const Shape& s = shape_of(g[i]);
    const UOp m0 = tensor(s), v0 = tensor(s);
    const UOp m = assigned(m0, add(mul(m0, 0.9), mul(g[i], 0.1)));
    const UOp v = assigned(v0, add(mul(v0, 0.999), mul(square(g[i]), 0.001)));
    const UOp mean = div(m, broadcast_to(sub(1.0, b1_now), s)), square_mean = div(v, broadcast_to(sub(1.0, b2_now), s));
    const UOp step = mul(broadcast_to(rate, s), div(mean, add(ops::sqrt(square_mean), 1e-8)));
    out.insert(out.end(), {m, v, assigned(parameters[i], sub(parameters[i], step))});
  }
  return out;
}

inline Stores adam(const UOp& loss, const std::vector<UOp>& parameters) {
  Stores out = adam_update(parameters, gradients(loss, parameters));
  out.push_back(output(loss));
  return out;
}

struct Batchnorm {
  UOp weight, bias, running_mean, running_var;
  explicit Batchnorm(int64_t channels)
      : weight(tensor({channels})), bias(tensor({channels})), running_mean(tensor({channels})), running_var(tensor({channels})) {}

  UOp eval(const UOp& x) const { return batchnorm(x, weight, bias, running_mean, rsqrt(add(running_var, 1e-5))); }
  UOp train(const UOp& x, Stores* stores = nullptr) const {
    const UOp m = mean(x, {0, 2, 3}), v = var(x, {0, 2, 3}, false, 0);
    if (stores) {
      stores->push_back(assigned(running_mean, add(mul(running_mean, 0.9), mul(ops::detach(m), 0.1))));
      stores->push_back(assigned(running_var, add(mul(running_var, 0.9), mul(ops::detach(v), 0.1))));
    }
    return batchnorm(x, weight, bias, m, rsqrt(add(v, 1e-5)));
  }
};

inline UOp layernorm_affine(const UOp& x, const UOp& weight, const UOp& bias) { return add(mul(layernorm(x), weight), bias); }

struct TransformerBlock {
  int64_t width = 64, heads = 4;
  UOp qkv = tensor({64, 192}), qkv_bias = tensor({192}), proj = tensor({64, 64}), proj_bias = tensor({64});
  UOp up = tensor({64, 256}), up_bias = tensor({256}), down = tensor({256, 64}), down_bias = tensor({64});
  UOp w1 = tensor({64}), b1 = tensor({64}), w2 = tensor({64}), b2 = tensor({64});

  std::vector<UOp> parameters() const { return {qkv, qkv_bias, proj, proj_bias, up, up_bias, down, down_bias, w1, b1, w2, b2}; }

  UOp operator()(const UOp& x) const {
    const int64_t batch = shape_of(x)[0].value(), length = shape_of(x)[1].value();
    const UOp a = ops::linear(layernorm_affine(x, w1, b1), qkv, qkv_bias);
    const std::vector<UOp> parts = ops::chunk(a, 3, -1);
    auto head = [&](const UOp& u) { return ops::transpose(ops::reshape(u, {batch, length, heads, width / heads}), 1, 2); };
    const UOp attended = scaled_dot_product_attention(head(parts[0]), head(parts[1]), head(parts[2]), {.is_causal = true});
    const UOp joined = ops::reshape(ops::transpose(attended, 1, 2), {batch, length, width});
    const UOp h = add(x, ops::linear(joined, proj, proj_bias));
    return add(h, ops::linear(gelu(ops::linear(layernorm_affine(h, w2, b2), up, up_bias)), down, down_bias));
  }
};

}  // namespace tinygrad::test_programs
