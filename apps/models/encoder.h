#pragma once
/// Encoders of transformers with 768 features in 12 heads: ViT-B/16 (Dosovitskiy et al., 2020) and BERT-base (Devlin et al., 2018), without
/// dropout.
#include <vector>

#include <tinygrad/nn.h>

namespace tinygrad::apps {

namespace encoder {

inline constexpr int64_t features = 768, heads = 12;

/// Every token attends to all.
struct Attention : nn::Module {
  nn::Linear qkv{features, 3 * features}, out{features, features};
  Tensor operator()(const Tensor& x) const {
    const int64_t batch = x.size(0), tokens = x.size(1);
    const std::vector<Tensor> parts = qkv(x).chunk(3, -1);
    const auto by_head = [&](const Tensor& t) { return t.reshape({batch, tokens, heads, features / heads}).transpose(1, 2); };
    const Tensor y = by_head(parts[0]).scaled_dot_product_attention(by_head(parts[1]), by_head(parts[2]));
    return out(y.transpose(1, 2).reshape({batch, tokens, features}));
  }
  TG_FIELDS(qkv, out)
};

/// Normalized before each part, as ViT does, or behind each sum, as BERT.
struct Layer : nn::Module {
  nn::LayerNorm norm1, norm2;
  Attention attention;
  nn::Linear widen{features, 4 * features}, narrow{4 * features, features};
  bool norm_first;
  Layer(bool normalized_first, double eps) : norm1(features, {.eps = eps}), norm2(features, {.eps = eps}), norm_first(normalized_first) {}
  Tensor operator()(const Tensor& x) const {
    if (norm_first) {
      const Tensor y = x + attention(norm1(x));
      return y + hidden(norm2(y));
    }
    const Tensor y = norm1(x + attention(x));
    return norm2(y + hidden(y));
  }
  TG_FIELDS(norm1, norm2, attention, widen, narrow)

 private:
  Tensor hidden(const Tensor& x) const { return narrow(widen(x).gelu(GeluForm::erf)); }
};

}  // namespace encoder

/// Images (batch, 3, 224, 224) to scores (batch, 1000).
struct VitB16 : nn::Module {
  static constexpr double eps = 1e-6;
  nn::Conv2d patches{3, encoder::features, 16, {.stride = {16}}};
  Tensor class_token = Tensor::randn({1, 1, encoder::features}) * 0.02;
  Tensor positions = Tensor::randn({1, 197, encoder::features}) * 0.02;
  std::vector<encoder::Layer> layers;
  nn::LayerNorm norm{encoder::features, {.eps = eps}};
  nn::Linear out{encoder::features, 1000};

  VitB16() {
    for (int i = 0; i < 12; ++i) layers.emplace_back(true, eps);
  }
  Tensor operator()(const Tensor& images) const {
    const int64_t batch = images.size(0);
    const Tensor tokens = patches(images).flatten(2).transpose(1, 2);
    Tensor x = Tensor::cat({class_token.expand({batch, 1, encoder::features}), tokens}, 1) + positions;
    for (const encoder::Layer& layer : layers) x = layer(x);
    return out(norm(x[{Slice(), 0}]));
  }
  TG_FIELDS(patches, class_token, positions, layers, norm, out)
};

/// With the head that predicts masked words.
struct BertBase : nn::Module {
  static constexpr double eps = 1e-12;
  static constexpr int64_t vocabulary = 30522, most_tokens = 512;
  nn::Embedding words{vocabulary, encoder::features}, positions{most_tokens, encoder::features}, segments{2, encoder::features};
  nn::LayerNorm norm{encoder::features, {.eps = eps}};
  std::vector<encoder::Layer> layers;
  nn::Linear transform{encoder::features, encoder::features};
  nn::LayerNorm transform_norm{encoder::features, {.eps = eps}};
  Tensor bias = Tensor::zeros({vocabulary});

  explicit BertBase(int64_t count = 12) {
    for (int64_t i = 0; i < count; ++i) layers.emplace_back(false, eps);
  }
  /// Word numbers (batch, tokens) of one segment to a score for each word (batch, tokens, vocabulary).
  Tensor operator()(const Tensor& numbers) const {
    Tensor x = norm(words(numbers) + positions(Tensor::arange(numbers.size(1))) + segments.weight[0]);
    for (const encoder::Layer& layer : layers) x = layer(x);
    return transform_norm(transform(x).gelu(GeluForm::erf)).linear(words.weight.transpose(), bias);
  }
  TG_FIELDS(words, positions, segments, norm, layers, transform, transform_norm, bias)
};

}  // namespace tinygrad::apps
