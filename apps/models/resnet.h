#pragma once
/// ResNets (He et al., 2016), with the stride of a narrowing block in its 3x3 convolution.
#include <initializer_list>
#include <optional>
#include <vector>

#include <tinygrad/nn.h>

#include "models/conv_norm.h"

namespace tinygrad::apps {

/// Two 3x3 convolutions, around which the input is added.
struct BasicBlock : nn::Module {
  static constexpr int64_t expansion = 1;
  ConvNorm first, second;
  std::optional<ConvNorm> shortcut;  // where the shape changes
  BasicBlock(int64_t in, int64_t width, int64_t stride) : first(in, width, 3, stride), second(width, width, 3, 1) {
    if (stride != 1 || in != width) shortcut.emplace(in, width, 1, stride);
  }
  Tensor operator()(const Tensor& x) const { return (second(first(x).relu()) + (shortcut ? (*shortcut)(x) : x)).relu(); }
  TG_FIELDS(first, second, shortcut)
};

/// A 3x3 convolution between two 1x1 ones that narrow and widen, around which the input is added.
struct Bottleneck : nn::Module {
  static constexpr int64_t expansion = 4;
  ConvNorm narrow, middle, widen;
  std::optional<ConvNorm> shortcut;  // where the shape changes
  Bottleneck(int64_t in, int64_t width, int64_t stride)
      : narrow(in, width, 1, 1), middle(width, width, 3, stride), widen(width, width * expansion, 1, 1) {
    if (stride != 1 || in != width * expansion) shortcut.emplace(in, width * expansion, 1, stride);
  }
  Tensor operator()(const Tensor& x) const {
    const Tensor y = widen(middle(narrow(x).relu()).relu());
    return (y + (shortcut ? (*shortcut)(x) : x)).relu();
  }
  TG_FIELDS(narrow, middle, widen, shortcut)
};

/// Images (batch, 3, height, width) to scores (batch, 1000).
template <class Block>
struct ResNet : nn::Module {
  ConvNorm stem{3, 64, 7, 2};
  std::vector<Block> blocks;
  nn::Linear out{512 * Block::expansion, 1000};

  /// Blocks of each width, from 64 to 512.
  explicit ResNet(std::initializer_list<int> depths) {
    int64_t in = 64, width = 64;
    for (const int depth : depths) {
      for (int i = 0; i < depth; ++i) {
        blocks.emplace_back(in, width, i == 0 && width > 64 ? 2 : 1);
        in = width * Block::expansion;
      }
      width *= 2;
    }
  }
  Tensor operator()(const Tensor& images) const {
    Tensor x = stem(images).relu().max_pool2d({.kernel_size = {3, 3}, .stride = {2}, .padding = {1}});
    for (const Block& block : blocks) x = block(x);
    return out(x.mean({2, 3}));
  }
  TG_FIELDS(stem, blocks, out)
};

struct ResNet18 : ResNet<BasicBlock> {
  ResNet18() : ResNet({2, 2, 2, 2}) {}
};
struct ResNet50 : ResNet<Bottleneck> {
  ResNet50() : ResNet({3, 4, 6, 3}) {}
};

}  // namespace tinygrad::apps
