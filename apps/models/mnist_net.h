#pragma once
#include <tinygrad/nn.h>

namespace tinygrad::apps {

/// Pixels (batch, 1, 28, 28) of 0 to 255 to scores (batch, 10).
struct MnistNet : nn::Module {
  nn::Conv2d conv1{1, 32, 5}, conv2{32, 32, 5}, conv3{32, 64, 3}, conv4{64, 64, 3};
  nn::BatchNorm norm1{32}, norm2{64};
  nn::Linear out{64 * 3 * 3, 10};

  Tensor operator()(const Tensor& pixels) const {
    Tensor x = pixels.to_float() / 255;
    x = norm1(conv2(conv1(x).relu()).relu()).max_pool2d();
    x = norm2(conv4(conv3(x).relu()).relu()).max_pool2d();
    return out(x.flatten(1));
  }
  TG_FIELDS(conv1, conv2, norm1, conv3, conv4, norm2, out)
};

}  // namespace tinygrad::apps
