// ResNet-50 (He et al., 2016), with the stride in the 3x3 convolutions.
#include <optional>

#include "models/workload.h"

namespace tinygrad::apps {

namespace {

/// A convolution without bias, then a batch normalization.
struct ConvNorm : nn::Module {
  nn::Conv2d conv;
  nn::BatchNorm norm;
  ConvNorm(int64_t in, int64_t out, int64_t size, int64_t stride)
      : conv(in, out, size, {.stride = {stride}, .padding = {size / 2}, .bias = false}), norm(out) {}
  Tensor operator()(const Tensor& x) const { return norm(conv(x)); }
  TG_FIELDS(conv, norm)
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

struct ResNet50 : nn::Module {
  ConvNorm stem{3, 64, 7, 2};
  std::vector<Bottleneck> blocks;
  nn::Linear out{512 * Bottleneck::expansion, 1000};

  ResNet50() {
    int64_t in = 64, width = 64;
    for (const int depth : {3, 4, 6, 3}) {
      for (int i = 0; i < depth; ++i) {
        blocks.emplace_back(in, width, i == 0 && width > 64 ? 2 : 1);
        in = width * Bottleneck::expansion;
      }
      width *= 2;
    }
  }
  Tensor operator()(const Tensor& images) const {
    Tensor x = stem(images).relu().max_pool2d({.kernel_size = {3, 3}, .stride = {2}, .padding = {1}});
    for (const Bottleneck& block : blocks) x = block(x);
    return out(x.mean({2, 3}));
  }
  TG_FIELDS(stem, blocks, out)
};

Tensor images(int64_t batch) { return Tensor::empty({batch, 3, 224, 224}); }

}  // namespace

Workload resnet50_inference() {
  const auto net = std::make_shared<ResNet50>();
  forget_weights(*net);
  return {.results = {(*net)(images(1))}, .owners = {net}};
}

Workload resnet50_training() {
  constexpr int64_t batch = 4;
  const Tensor input = images(batch).is_param_(false), classes = Tensor::empty({batch}, {.dtype = DType::int32});
  return training_step<nn::optim::SGD>(std::make_shared<ResNet50>(), nn::optim::SGDOptions{.lr = 0.01, .momentum = 0.9},
                                       [&](const ResNet50& net) { return net(input).sparse_categorical_crossentropy(classes); });
}

}  // namespace tinygrad::apps
