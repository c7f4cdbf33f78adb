#pragma once
/// Programs with large temporaries, of which kernels can make and use a part after the other.

#include "support/program_parts.h"
#include "target/target.h"

namespace tinygrad::test_programs {

/// Caches that hold less than what these programs pass on.
inline Target with_small_caches(Target t) {
  t.l2_bytes = 256 << 10;
  t.l3_bytes = 1 << 20;
  return t;
}

/// The gradients of attention by queries, keys and values of a shape.
inline Stores attention_gradients(const Shape& shape, const UOp& scale = {}, const AttentionOptions& options = {}) {
  const UOp q = tensor(shape), k = tensor(shape), v = tensor(shape);
  const UOp y = scaled_dot_product_attention(scale ? mul(q, scale) : q, k, v, options);
  Stores out;
  for (const UOp& g : gradients(sum(square(y)), {q, k, v})) out.push_back(output(g));
  return out;
}

/// The same through two layers, the first one's output the queries of the second, with another product between.
inline Stores layers_of_attention(const Shape& shape, const AttentionOptions& options = {}) {
  const int64_t width = shape.back().value();
  const UOp x = tensor(shape), w = tensor({width, width}), k = tensor(shape), v = tensor(shape);
  const UOp y = matmul(scaled_dot_product_attention(x, k, v, options), w);
  const UOp z = matmul(scaled_dot_product_attention(y, y, y, options), w);
  Stores out;
  for (const UOp& g : gradients(sum(square(z)), {x, w, k, v})) out.push_back(output(g));
  return out;
}

inline Programs repeated_programs() {
  Programs p;
  p.push_back({"heads", [] { return attention_gradients({1, 8, 160, 16}); }});
  p.push_back({"heads of a batch", [] { return attention_gradients({3, 4, 128, 16}); }});
  p.push_back({"causal heads", [] { return attention_gradients({1, 6, 192, 16}, {}, {.is_causal = true}); }});
  p.push_back({"masked heads", [] { return attention_gradients({1, 8, 160, 16}, {}, {.mask = tensor({160, 160})}); }});
  p.push_back({"rows of one head", [] { return attention_gradients({1, 1, 512, 16}); }});
  p.push_back({"rows of one causal head", [] { return attention_gradients({1, 1, 512, 16}, {}, {.is_causal = true}); }});
  p.push_back({"rows of two heads", [] { return attention_gradients({1, 2, 512, 16}); }});
  p.push_back({"a prime number of rows", [] { return attention_gradients({1, 6, 181, 16}); }});
  p.push_back({"two layers", [] { return layers_of_attention({1, 8, 160, 16}); }});
  p.push_back({"two causal layers", [] { return layers_of_attention({1, 8, 160, 16}, {.is_causal = true}); }});
  p.push_back({"products along a batch", [] {
                 const UOp a = tensor({8, 240, 24}), b = tensor({8, 24, 240}), c = tensor({8, 240, 24});
                 const UOp y = matmul(a, b);
                 return outputs({matmul(relu(y), c), softmax(y), sum(square(y), Axes{0, 1})});
               }});
  p.push_back({"sums with an end", [] {
                 const UOp x = tensor({768, 24}), w = tensor({24, 768}), g = tensor({768, 24});
                 const UOp y = relu(matmul(x, w));
                 return outputs({mul(matmul(ops::transpose(y, 0, 1), g), 0.5), matmul(y, tensor({768, 16})), sum(y, Axes{0})});
               }});
  return p;
}

}  // namespace tinygrad::test_programs
