#pragma once
/// Programs whose schedules and results are tested.

#include "support/more_programs.h"
#include "support/program_parts.h"

namespace tinygrad::test_programs {

inline void elementwise(Programs& p) {
  p.push_back({"relu of a*b+c", [] {
                 const UOp a = tensor({256, 256}), b = tensor({256, 256}), c = tensor({256, 256});
                 return outputs({relu(add(mul(a, b), c))});
               }});
  p.push_back({"chain of twenty", [] {
                 UOp x = tensor({256, 256});
                 for (int i = 0; i < 20; ++i) x = mul(add(x, 1.0), 0.5);
                 return outputs({x});
               }});
  p.push_back({"broadcast add", [] { return outputs({add(tensor({256, 1}), tensor({256}))}); }});
  p.push_back({"diamond of exp", [] {
                 const UOp e = ops::exp(tensor({256, 256}));
                 return outputs({add(mul(e, 2.0), mul(e, e))});
               }});
  p.push_back({"two outputs of one exp", [] {
                 const UOp e = ops::exp(tensor({256, 256}));
                 return outputs({add(e, 1.0), mul(e, 3.0)});
               }});
  p.push_back({"transposed add", [] {
                 const UOp a = tensor({256, 256});
                 return outputs({add(a, ops::transpose(a))});
               }});
  p.push_back({"cat of three", [] {
                 const std::vector<UOp> parts{tensor({64, 32}), tensor({64, 48}), tensor({64, 16})};
                 return outputs({mul(ops::cat(parts, 1), 2.0)});
               }});
  p.push_back({"pad and shrink", [] {
                 const UOp padded = ops::pad(ops::exp(tensor({64, 64})), {{1, 1}, {1, 1}});
                 return outputs({ops::shrink(padded, {{0, 64}, {2, 66}})});
               }});
  p.push_back({"gelu", [] { return outputs({gelu(tensor({256, 256}))}); }});
  p.push_back({"one hot", [] { return outputs({one_hot(tensor({256}, DType::int32), 64, DType::float32)}); }});
}

inline void reductions(Programs& p) {
  p.push_back({"sum of all", [] { return outputs({sum(tensor({512, 512}))}); }});
  p.push_back({"row sums", [] { return outputs({sum(tensor({256, 256}), 1)}); }});
  p.push_back({"column sums", [] { return outputs({sum(tensor({256, 256}), 0)}); }});
  p.push_back({"sum of exp with epilogue", [] { return outputs({ops::log(add(sum(ops::exp(tensor({256, 256})), 1), 1.0))}); }});
  p.push_back({"sum of sums", [] { return outputs({sum(ops::reshape(sum(tensor({32, 64, 128}), 2), {32, 64}), 1)}); }});
  p.push_back({"row sums then column sums with relu", [] { return outputs({sum(relu(sum(tensor({128, 64, 64}), 2)), 0)}); }});
  p.push_back({"row sums and column sums", [] {
                 const UOp x = ops::exp(tensor({256, 256}));
                 return outputs({sum(x, 1), sum(x, 0)});
               }});
  p.push_back({"rows divided by their sum", [] {
                 const UOp x = tensor({256, 256});
                 return outputs({div(x, sum(x, 1, true))});
               }});
  p.push_back({"all divided by the sum of all", [] {
                 const UOp x = tensor({256, 256});
                 return outputs({div(x, sum(x))});
               }});
  p.push_back({"mean and variance", [] {
                 const UOp x = tensor({256, 256});
                 return outputs({mean(x, 1), var(x, 1)});
               }});
  p.push_back({"argmax", [] { return outputs({argmax(tensor({256, 256}), 1)}); }});
  p.push_back({"softmax", [] { return outputs({softmax(tensor({256, 256}))}); }});
  p.push_back({"log softmax", [] { return outputs({log_softmax(tensor({256, 256}))}); }});
  p.push_back({"softmax of few long rows", [] { return outputs({softmax(tensor({4, 32768}))}); }});
  p.push_back({"layer norm", [] { return outputs({layernorm_affine(tensor({256, 256}), tensor({256}), tensor({256}))}); }});
  p.push_back({"cumulative sum", [] { return outputs({cumsum(tensor({64, 256}), 1)}); }});
  p.push_back({"cross entropy", [] { return outputs({sparse_categorical_crossentropy(tensor({256, 10}), tensor({256}, DType::int32))}); }});
  p.push_back({"cross entropy backward", [] {
                 const UOp x = tensor({256, 10});
                 const UOp loss = sparse_categorical_crossentropy(x, tensor({256}, DType::int32));
                 return outputs({loss, gradients(loss, {x})[0]});
               }});
}

inline void products(Programs& p) {
  p.push_back({"matmul", [] { return outputs({matmul(tensor({128, 96}), tensor({96, 64}))}); }});
  p.push_back(
      {"matmul of transposed", [] { return outputs({matmul(ops::transpose(tensor({96, 128})), ops::transpose(tensor({64, 96})))}); }});
  p.push_back({"matmul of relu, bias and relu",
               [] { return outputs({relu(ops::linear(relu(tensor({128, 96})), tensor({96, 64}), tensor({64})))}); }});
  p.push_back({"matmul of exp", [] { return outputs({matmul(ops::exp(tensor({128, 96})), tensor({96, 64}))}); }});
  p.push_back({"three matmuls",
               [] { return outputs({matmul(matmul(matmul(tensor({64, 64}), tensor({64, 64})), tensor({64, 64})), tensor({64, 64}))}); }});
  p.push_back({"matrix and vector", [] { return outputs({matmul(tensor({512, 256}), tensor({256}))}); }});
  p.push_back({"matmul backward", [] {
                 const UOp a = tensor({128, 96}), b = tensor({96, 64});
                 const std::vector<UOp> g = gradients(sum(square(matmul(a, b))), {a, b});
                 return outputs({g[0], g[1]});
               }});
  p.push_back({"embedding", [] { return outputs({embedding(tensor({1000, 64}), tensor({32}, DType::int32))}); }});
  p.push_back({"embedding and linear",
               [] { return outputs({matmul(embedding(tensor({1000, 64}), tensor({32}, DType::int32)), tensor({64, 64}))}); }});
  p.push_back({"attention", [] {
                 const UOp q = tensor({2, 4, 64, 16}), k = tensor({2, 4, 64, 16}), v = tensor({2, 4, 64, 16});
                 return outputs({scaled_dot_product_attention(q, k, v)});
               }});
  p.push_back({"causal attention", [] {
                 const UOp q = tensor({2, 4, 64, 16}), k = tensor({2, 4, 64, 16}), v = tensor({2, 4, 64, 16});
                 return outputs({scaled_dot_product_attention(q, k, v, {.is_causal = true})});
               }});
  p.push_back({"gelu MLP", [] {
                 const UOp h = gelu(ops::linear(tensor({64, 64}), tensor({64, 256}), tensor({256})));
                 return outputs({ops::linear(h, tensor({256, 64}), tensor({64}))});
               }});
  p.push_back({"transformer block", [] { return outputs({TransformerBlock()(tensor({2, 32, 64}))}); }});
  p.push_back({"transformer block backward", [] {
                 const TransformerBlock block;
                 const UOp loss = sum(square(block(tensor({2, 32, 64}))));
                 Stores out{output(loss)};
                 for (const UOp& g : gradients(loss, block.parameters())) out.push_back(output(g));
                 return out;
               }});
}

inline void convolutions(Programs& p) {
  p.push_back({"convolution", [] { return outputs({conv2d(tensor({2, 8, 16, 16}), tensor({16, 8, 3, 3}), {}, {.padding = 1})}); }});
  p.push_back({"convolution, bias and relu",
               [] { return outputs({relu(conv2d(tensor({2, 8, 16, 16}), tensor({16, 8, 3, 3}), tensor({16}), {.padding = 1}))}); }});
  p.push_back({"strided convolution",
               [] { return outputs({conv2d(tensor({2, 8, 16, 16}), tensor({16, 8, 3, 3}), {}, {.stride = 2, .padding = 1})}); }});
  p.push_back({"grouped convolution",
               [] { return outputs({conv2d(tensor({2, 8, 16, 16}), tensor({16, 2, 3, 3}), {}, {.groups = 4, .padding = 1})}); }});
  p.push_back({"two convolutions", [] {
                 const UOp h = relu(conv2d(tensor({2, 8, 16, 16}), tensor({16, 8, 3, 3}), {}, {.padding = 1}));
                 return outputs({conv2d(h, tensor({8, 16, 3, 3}), {}, {.padding = 1})});
               }});
  p.push_back({"convolution and batch norm, eval", [] {
                 return outputs({relu(Batchnorm(16).eval(conv2d(tensor({2, 8, 16, 16}), tensor({16, 8, 3, 3}), {}, {.padding = 1})))});
               }});
  p.push_back({"batch norm, train", [] {
                 Stores out;
                 const UOp y = Batchnorm(16).train(tensor({8, 16, 16, 16}), &out);
                 out.push_back(output(relu(y)));
                 return out;
               }});
  p.push_back({"convolution and batch norm, train", [] {
                 Stores out;
                 const UOp y = Batchnorm(16).train(conv2d(tensor({8, 8, 16, 16}), tensor({16, 8, 3, 3}), {}, {.padding = 1}), &out);
                 out.push_back(output(relu(y)));
                 return out;
               }});
  p.push_back({"batch norm backward", [] {
                 const UOp x = tensor({8, 16, 16, 16});
                 const Batchnorm bn(16);
                 Stores out;
                 for (const UOp& g : gradients(sum(square(bn.train(x))), {x, bn.weight, bn.bias})) out.push_back(output(g));
                 return out;
               }});
  p.push_back({"max pool", [] { return outputs({max_pool2d(tensor({2, 8, 16, 16}))}); }});
  p.push_back({"average pool", [] { return outputs({avg_pool2d(tensor({2, 8, 16, 16}))}); }});
  p.push_back({"convolution, relu and max pool", [] {
                 return outputs({max_pool2d(relu(conv2d(tensor({2, 8, 16, 16}), tensor({16, 8, 3, 3}), tensor({16}), {.padding = 1})))});
               }});
  p.push_back({"convolution backward", [] {
                 const UOp x = tensor({2, 8, 16, 16}), w = tensor({16, 8, 3, 3});
                 Stores out;
                 for (const UOp& g : gradients(sum(square(conv2d(x, w, {}, {.padding = 1}))), {x, w})) out.push_back(output(g));
                 return out;
               }});
}

inline void training(Programs& p) {
  p.push_back({"MLP", [] {
                 UOp x = tensor({64, 64});
                 for (int i = 0; i < 2; ++i) x = relu(ops::linear(x, tensor({64, 64}), tensor({64})));
                 return outputs({ops::linear(x, tensor({64, 10}), tensor({10}))});
               }});
  p.push_back({"MLP step with SGD", [] {
                 const std::vector<UOp> w{tensor({64, 128}), tensor({128}), tensor({128, 10}), tensor({10})};
                 const UOp h = relu(ops::linear(tensor({64, 64}), w[0], w[1]));
                 return sgd(sparse_categorical_crossentropy(ops::linear(h, w[2], w[3]), tensor({64}, DType::int32)), w);
               }});
  p.push_back({"MLP step with momentum", [] {
                 const std::vector<UOp> w{tensor({64, 128}), tensor({128}), tensor({128, 10}), tensor({10})};
                 const UOp h = relu(ops::linear(tensor({64, 64}), w[0], w[1]));
                 return sgd_with_momentum(sparse_categorical_crossentropy(ops::linear(h, w[2], w[3]), tensor({64}, DType::int32)), w);
               }});
  p.push_back({"Adam, six parameters", [] {
                 std::vector<UOp> w, g;
                 for (int64_t n : {16, 32, 48, 64, 80, 96}) {
                   w.push_back(tensor({n, 64}));
                   g.push_back(tensor({n, 64}));
                 }
                 return adam_update(w, g);
               }});
  p.push_back({"conv net step with Adam", [] {
                 const std::vector<UOp> w{tensor({8, 1, 3, 3}), tensor({8}),          tensor({16, 8, 3, 3}),
                                          tensor({16}),         tensor({16 * 4, 10}), tensor({10})};
                 UOp x = tensor({32, 1, 8, 8});
                 x = max_pool2d(relu(conv2d(x, w[0], w[1], {.padding = 1})));
                 x = max_pool2d(relu(conv2d(x, w[2], w[3], {.padding = 1})));
                 x = ops::linear(ops::flatten(x, 1), w[4], w[5]);
                 return adam(sparse_categorical_crossentropy(x, tensor({32}, DType::int32)), w);
               }});
  p.push_back({"random numbers", [] { return outputs({rand({tensor({2}, DType::uint32), tensor({2}, DType::uint32)}, {64, 64})}); }});
  p.push_back(
      {"normal random numbers", [] { return outputs({randn({tensor({2}, DType::uint32), tensor({2}, DType::uint32)}, {64, 64})}); }});
  p.push_back({"dropout",
               [] { return outputs({dropout({tensor({2}, DType::uint32), tensor({2}, DType::uint32)}, relu(tensor({64, 64})), 0.1)}); }});
}

inline void effects(Programs& p) {
  p.push_back({"in-place add", [] {
                 const UOp b = tensor({64, 64});
                 return Stores{assigned(b, add(b, 1.0))};
               }});
  p.push_back({"two in-place adds", [] {
                 const UOp b = tensor({64, 64});
                 const UOp one = assigned(b, add(b, 1.0));
                 return Stores{assigned(one, mul(one, 3.0))};
               }});
  p.push_back({"flip in place", [] {
                 const UOp b = tensor({64, 64});
                 return Stores{assigned(b, ops::flip(b, {0}))};
               }});
  p.push_back({"slice assigned", [] {
                 const UOp b = tensor({64, 64});
                 const UOp rows = ops::shrink(b, {{8, 16}, {0, 64}});
                 return Stores{assigned(rows, mul(rows, 2.0))};
               }});
  p.push_back({"overlapping slice assigned", [] {
                 const UOp b = tensor({64, 64});
                 return Stores{assigned(ops::shrink(b, {{8, 16}, {0, 64}}), ops::shrink(b, {{4, 12}, {0, 64}}))};
               }});
  p.push_back({"two states of a buffer", [] {
                 const UOp b = tensor({64, 64});
                 return outputs({add(b, assigned(b, mul(b, 2.0)))});
               }});
  p.push_back({"reader of the old state", [] {
                 const UOp b = tensor({64, 64});
                 return Stores{assigned(b, mul(b, 2.0)), output(add(b, scalar_one()))};
               }});
  p.push_back({"assigned, then summed", [] {
                 const UOp b = tensor({64, 64});
                 return outputs({sum(assigned(b, mul(b, 2.0)), 1)});
               }});
}

inline const Programs& all() {
  static const Programs& made = *new Programs([] {
    Programs p;
    elementwise(p);
    reductions(p);
    products(p);
    convolutions(p);
    training(p);
    effects(p);
    attentions(p);
    losses_and_norms(p);
    more_gradients(p);
    data_movement(p);
    return p;
  }());
  return made;
}

}  // namespace tinygrad::test_programs
