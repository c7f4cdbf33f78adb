#pragma once
/// Networks of depthwise convolutions: MobileNetV3-Large (Howard et al., 2019) and EfficientNet-B0 (Tan and Le, 2019), as torchvision has
/// them, without dropout.
#include <optional>
#include <vector>

#include <tinygrad/nn.h>

#include "models/conv_norm.h"

namespace tinygrad::apps {

namespace mobile {

enum class Activation { relu, hardswish, silu };

inline Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::relu: return x.relu();
    case Activation::hardswish: return x.hardswish();
    default: return x.silu();
  }
}

/// Scales each channel by what two 1x1 convolutions make of the means of all (Hu et al., 2018).
struct SqueezeExcite : nn::Module {
  nn::Conv2d narrow, widen;
  bool silu;  ///< SiLU and a sigmoid; otherwise ReLU and a hard sigmoid
  SqueezeExcite(int64_t channels, int64_t squeezed, bool with_silu)
      : narrow(channels, squeezed, 1), widen(squeezed, channels, 1), silu(with_silu) {}
  Tensor operator()(const Tensor& x) const {
    const Tensor y = narrow(x.mean({2, 3}, {.keepdim = true}));
    return x * (silu ? widen(y.silu()).sigmoid() : widen(y.relu()).hardsigmoid());
  }
  TG_FIELDS(narrow, widen)
};

struct BlockOptions {
  int64_t in, expanded, out, window, stride;
  int64_t squeezed = 0;  ///< channels; 0: no squeeze and excitation
  Activation activation = Activation::relu;
  double eps = 1e-5;
};

/// A 1x1 convolution that widens, a depthwise one and a 1x1 one that narrows, around which the input is added where it fits.
struct Block : nn::Module {
  std::optional<ConvNorm> expand;
  ConvNorm depthwise;
  std::optional<SqueezeExcite> squeeze;
  ConvNorm project;
  Activation activation;
  bool adds;

  explicit Block(const BlockOptions& o)
      : depthwise(o.expanded, o.expanded, o.window, o.stride, o.expanded, o.eps),
        project(o.expanded, o.out, 1, 1, 1, o.eps),
        activation(o.activation),
        adds(o.stride == 1 && o.in == o.out) {
    if (o.expanded != o.in) expand.emplace(o.in, o.expanded, 1, 1, 1, o.eps);
    if (o.squeezed) squeeze.emplace(o.expanded, o.squeezed, o.activation == Activation::silu);
  }
  Tensor operator()(const Tensor& x) const {
    Tensor y = expand ? activate((*expand)(x), activation) : x;
    y = activate(depthwise(y), activation);
    if (squeeze) y = (*squeeze)(y);
    y = project(y);
    return adds ? y + x : y;
  }
  TG_FIELDS(expand, depthwise, squeeze, project)
};

}  // namespace mobile

/// Images (batch, 3, height, width) to scores (batch, 1000).
struct MobileNetV3 : nn::Module {
  static constexpr double eps = 1e-3;
  ConvNorm stem{3, 16, 3, 2, 1, eps};
  std::vector<mobile::Block> blocks;
  ConvNorm last{160, 960, 1, 1, 1, eps};
  nn::Linear hidden{960, 1280}, out{1280, 1000};

  MobileNetV3() {
    using enum mobile::Activation;
    for (const mobile::BlockOptions& o : {mobile::BlockOptions{16, 16, 16, 3, 1, 0, relu, eps},
                                          {16, 64, 24, 3, 2, 0, relu, eps},
                                          {24, 72, 24, 3, 1, 0, relu, eps},
                                          {24, 72, 40, 5, 2, 24, relu, eps},
                                          {40, 120, 40, 5, 1, 32, relu, eps},
                                          {40, 120, 40, 5, 1, 32, relu, eps},
                                          {40, 240, 80, 3, 2, 0, hardswish, eps},
                                          {80, 200, 80, 3, 1, 0, hardswish, eps},
                                          {80, 184, 80, 3, 1, 0, hardswish, eps},
                                          {80, 184, 80, 3, 1, 0, hardswish, eps},
                                          {80, 480, 112, 3, 1, 120, hardswish, eps},
                                          {112, 672, 112, 3, 1, 168, hardswish, eps},
                                          {112, 672, 160, 5, 2, 168, hardswish, eps},
                                          {160, 960, 160, 5, 1, 240, hardswish, eps},
                                          {160, 960, 160, 5, 1, 240, hardswish, eps}})
      blocks.emplace_back(o);
  }
  Tensor operator()(const Tensor& images) const {
    Tensor x = stem(images).hardswish();
    for (const mobile::Block& block : blocks) x = block(x);
    return out(hidden(last(x).hardswish().mean({2, 3})).hardswish());
  }
  TG_FIELDS(stem, blocks, last, hidden, out)
};

/// Images (batch, 3, height, width) to scores (batch, 1000).
struct EfficientNetB0 : nn::Module {
  ConvNorm stem{3, 32, 3, 2};
  std::vector<mobile::Block> blocks;
  ConvNorm last{320, 1280, 1, 1};
  nn::Linear out{1280, 1000};

  EfficientNetB0() {
    struct Stage {
      int64_t expansion, window, stride, out;
      int layers;
    };
    int64_t in = 32;
    for (const Stage& s : {Stage{1, 3, 1, 16, 1},
                           {6, 3, 2, 24, 2},
                           {6, 5, 2, 40, 2},
                           {6, 3, 2, 80, 3},
                           {6, 5, 1, 112, 3},
                           {6, 5, 2, 192, 4},
                           {6, 3, 1, 320, 1}})
      for (int i = 0; i < s.layers; ++i) {
        blocks.emplace_back(mobile::BlockOptions{.in = in,
                                                 .expanded = in * s.expansion,
                                                 .out = s.out,
                                                 .window = s.window,
                                                 .stride = i == 0 ? s.stride : 1,
                                                 .squeezed = in / 4,
                                                 .activation = mobile::Activation::silu});
        in = s.out;
      }
  }
  Tensor operator()(const Tensor& images) const {
    Tensor x = stem(images).silu();
    for (const mobile::Block& block : blocks) x = block(x);
    return out(last(x).silu().mean({2, 3}));
  }
  TG_FIELDS(stem, blocks, last, out)
};

}  // namespace tinygrad::apps
