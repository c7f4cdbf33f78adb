#pragma once
/// More programs whose schedules and results are tested: attention and its relatives, losses, gradients, data movement, long reductions.

#include "support/program_parts.h"

namespace tinygrad::test_programs {

inline UOp heads(int64_t length = 32, DType dtype = DType::float32) { return tensor({1, 2, length, 16}, dtype); }

inline void attentions(Programs& p) {
  p.push_back({"attention with a boolean mask", [] {
                 return outputs({scaled_dot_product_attention(heads(), heads(), heads(), {.mask = tensor({32, 32}, DType::bool_)})});
               }});
  p.push_back({"attention with an additive mask",
               [] { return outputs({scaled_dot_product_attention(heads(), heads(), heads(), {.mask = tensor({32, 32})})}); }});
  p.push_back({"attention of half floats", [] {
                 return outputs(
                     {scaled_dot_product_attention(heads(32, DType::float16), heads(32, DType::float16), heads(32, DType::float16))});
               }});
  p.push_back(
      {"attention of few queries to many keys", [] { return outputs({scaled_dot_product_attention(heads(4), heads(512), heads(512))}); }});
  p.push_back({"attention of wide heads", [] {
                 const auto wide = [] { return tensor({1, 2, 64, 128}); };
                 return outputs({scaled_dot_product_attention(wide(), wide(), wide())});
               }});
  p.push_back({"attention of grouped queries", [] {
                 return outputs(
                     {scaled_dot_product_attention(heads(), tensor({1, 1, 32, 16}), tensor({1, 1, 32, 16}), {.enable_gqa = true})});
               }});
  p.push_back({"attention and projection", [] {
                 const UOp a = scaled_dot_product_attention(heads(), heads(), heads());
                 return outputs({ops::linear(ops::reshape(ops::transpose(a, 1, 2), {1, 32, 32}), tensor({32, 32}), tensor({32}))});
               }});
  p.push_back(
      {"attention without scale", [] { return outputs({matmul(softmax(matmul(heads(), ops::transpose(heads(), -1, -2))), heads())}); }});
  p.push_back({"attention and its weights", [] {
                 const UOp w = softmax(matmul(heads(), ops::transpose(heads(), -1, -2)));
                 return outputs({w, matmul(w, heads())});
               }});
  p.push_back({"attention backward", [] {
                 const UOp q = tensor({1, 2, 32, 16}), k = tensor({1, 2, 32, 16}), v = tensor({1, 2, 32, 16});
                 Stores out;
                 for (const UOp& g : gradients(sum(square(scaled_dot_product_attention(q, k, v))), {q, k, v})) out.push_back(output(g));
                 return out;
               }});
  p.push_back({"softmax of scores", [] { return outputs({softmax(matmul(tensor({64, 32}), tensor({32, 64})))}); }});
  p.push_back({"weighted mean by softmax", [] { return outputs({sum(mul(softmax(tensor({64, 128})), tensor({64, 128})), 1)}); }});
  p.push_back({"two products of one softmax", [] {
                 const UOp w = softmax(matmul(tensor({64, 32}), tensor({32, 64})));
                 return outputs({matmul(w, tensor({64, 16})), matmul(w, tensor({64, 16}))});
               }});
  p.push_back({"softmax of half floats", [] { return outputs({softmax(tensor({64, 256}, DType::float16))}); }});
  p.push_back({"logsumexp", [] { return outputs({logsumexp(tensor({64, 256}), 1)}); }});
}

inline void losses_and_norms(Programs& p) {
  p.push_back({"cross entropy of many classes",
               [] { return outputs({sparse_categorical_crossentropy(tensor({64, 1000}), tensor({64}, DType::int32))}); }});
  p.push_back({"mean squared error", [] { return outputs({mean(square(sub(tensor({64, 64}), tensor({64, 64}))))}); }});
  p.push_back({"rms norm", [] {
                 const UOp x = tensor({64, 256});
                 return outputs({mul(mul(x, rsqrt(add(mean(square(x), 1, true), 1e-5))), tensor({256}))});
               }});
  p.push_back({"rms norm and linear", [] {
                 const UOp x = tensor({64, 64});
                 return outputs({matmul(mul(x, rsqrt(add(mean(square(x), 1, true), 1e-5))), tensor({64, 64}))});
               }});
  p.push_back({"standard deviation", [] { return outputs({std_dev(tensor({64, 256}), 1)}); }});
  p.push_back({"clipped by norm", [] {
                 const UOp x = tensor({64, 64});
                 return outputs({div(x, maximum(ops::sqrt(sum(square(x))), 1.0))});
               }});
  p.push_back({"layer norm backward", [] {
                 const UOp x = tensor({64, 128}), w = tensor({128}), b = tensor({128});
                 Stores out;
                 for (const UOp& g : gradients(sum(square(layernorm_affine(x, w, b))), {x, w, b})) out.push_back(output(g));
                 return out;
               }});
}

inline Stores gradients_stored(const UOp& value, const std::vector<UOp>& of) {
  Stores out;
  for (const UOp& g : gradients(sum(square(value)), of)) out.push_back(output(g));
  return out;
}

inline void more_gradients(Programs& p) {
  p.push_back({"embedding backward", [] {
                 const UOp table = tensor({100, 16});
                 return gradients_stored(embedding(table, tensor({32}, DType::int32)), {table});
               }});
  p.push_back({"unpadded convolution backward", [] {
                 const UOp x = tensor({2, 8, 16, 16}), w = tensor({16, 8, 3, 3});
                 return gradients_stored(conv2d(x, w), {x, w});
               }});
  p.push_back({"strided convolution backward", [] {
                 const UOp x = tensor({2, 8, 16, 16}), w = tensor({16, 8, 3, 3});
                 return gradients_stored(conv2d(x, w, {}, {.stride = 2, .padding = 1}), {x, w});
               }});
  p.push_back({"max pool backward", [] {
                 const UOp x = tensor({2, 8, 16, 16});
                 return gradients_stored(max_pool2d(x), {x});
               }});
  p.push_back({"average pool backward", [] {
                 const UOp x = tensor({2, 8, 16, 16});
                 return gradients_stored(avg_pool2d(x), {x});
               }});
  p.push_back({"relu backward", [] {
                 const UOp x = tensor({64, 64}), y = relu(x);
                 Stores out = gradients_stored(y, {x});
                 out.push_back(output(y));
                 return out;
               }});
  p.push_back({"SGD of eight parameters", [] {
                 Stores out;
                 for (int64_t n = 1; n <= 8; ++n) {
                   const UOp w = tensor({16 * n}), g = tensor({16 * n});
                   out.push_back(assigned(w, sub(w, mul(g, 0.1))));
                 }
                 return out;
               }});
}

inline void data_movement(Programs& p) {
  p.push_back({"outer product", [] { return outputs({mul(ops::reshape(tensor({128}), {128, 1}), tensor({128}))}); }});
  p.push_back({"batched matmul", [] { return outputs({matmul(tensor({8, 32, 32}), tensor({8, 32, 32}))}); }});
  p.push_back({"pointwise convolution", [] { return outputs({conv2d(tensor({2, 16, 8, 8}), tensor({32, 16, 1, 1}))}); }});
  p.push_back({"depthwise convolution",
               [] { return outputs({conv2d(tensor({2, 16, 8, 8}), tensor({16, 1, 3, 3}), {}, {.groups = 16, .padding = 1})}); }});
  p.push_back({"flipped and added", [] {
                 const UOp x = tensor({64, 64});
                 return outputs({add(x, ops::flip(x, {0, 1}))});
               }});
  p.push_back({"concatenated, then summed", [] {
                 const std::vector<UOp> parts{tensor({64, 32}), tensor({64, 96})};
                 return outputs({sum(ops::cat(parts, 1), 1)});
               }});
  p.push_back({"sum of transposed", [] { return outputs({sum(ops::transpose(tensor({64, 128})), 1)}); }});
  p.push_back({"sum of a million", [] { return outputs({sum(tensor({1 << 20}))}); }});
  p.push_back({"sum of a prime number", [] { return outputs({sum(tensor({1200007}))}); }});
  p.push_back({"sum over two primes", [] { return outputs({sum(tensor({1009, 1013}))}); }});
  p.push_back({"sum of exponentials over short axes", [] { return outputs({sum(ops::exp(tensor({251, 3500})))}); }});
  p.push_back({"maxima of few rows", [] { return outputs({ops::max(tensor({2, 1000003}), 1)}); }});
  p.push_back({"product of long vectors", [] { return outputs({sum(mul(tensor({1 << 20}), tensor({1 << 20})))}); }});
  p.push_back({"variance of a million", [] { return outputs({var(tensor({1024, 1024}))}); }});
}

}  // namespace tinygrad::test_programs
