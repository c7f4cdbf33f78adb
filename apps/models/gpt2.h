#pragma once
/// GPT-2 (Radford et al., 2019), the smallest size: 768 features, 12 heads.
#include <vector>

#include <tinygrad/nn.h>

namespace tinygrad::apps::gpt2 {

inline constexpr int64_t features = 768, heads = 12, vocabulary = 50257, most_tokens = 1024;

struct Attention : nn::Module {
  nn::Linear qkv{features, 3 * features}, out{features, features};
  Tensor operator()(const Tensor& x) const {
    const int64_t batch = x.size(0), tokens = x.size(1);
    const std::vector<Tensor> parts = qkv(x).chunk(3, -1);
    const auto by_head = [&](const Tensor& t) { return t.reshape({batch, tokens, heads, features / heads}).transpose(1, 2); };
    const Tensor y = by_head(parts[0]).scaled_dot_product_attention(by_head(parts[1]), by_head(parts[2]), {.is_causal = true});
    return out(y.transpose(1, 2).reshape({batch, tokens, features}));
  }
  TG_FIELDS(qkv, out)
};

struct Block : nn::Module {
  nn::LayerNorm norm1{features}, norm2{features};
  Attention attention;
  nn::Linear widen{features, 4 * features}, narrow{4 * features, features};
  Tensor operator()(const Tensor& x) const {
    const Tensor y = x + attention(norm1(x));
    return y + narrow(widen(norm2(y)).gelu());
  }
  TG_FIELDS(norm1, attention, norm2, widen, narrow)
};

struct Gpt2 : nn::Module {
  nn::Embedding tokens{vocabulary, features}, positions{most_tokens, features};
  std::vector<Block> blocks;
  nn::LayerNorm norm{features};
  explicit Gpt2(int64_t layers) : blocks(static_cast<size_t>(layers)) {}

  /// Token numbers (batch, tokens) to a score for each possible next token (batch, tokens, vocabulary).
  Tensor operator()(const Tensor& numbers) const {
    Tensor x = tokens(numbers) + positions(Tensor::arange(numbers.size(1)));
    for (const Block& block : blocks) x = block(x);
    return norm(x).linear(tokens.weight.transpose());
  }
  TG_FIELDS(tokens, positions, blocks, norm)
};

}  // namespace tinygrad::apps::gpt2
