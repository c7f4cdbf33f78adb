#pragma once
#include <tinygrad/nn.h>

namespace tinygrad::apps {

/// A convolution without bias, padded by half a window, then a batch normalization.
struct ConvNorm : nn::Module {
  nn::Conv2d conv;
  nn::BatchNorm norm;
  ConvNorm(int64_t in, int64_t out, int64_t size, int64_t stride, int64_t groups = 1, double eps = 1e-5)
      : conv(in, out, size, {.stride = {stride}, .padding = {size / 2}, .groups = groups, .bias = false}), norm(out, {.eps = eps}) {}
  Tensor operator()(const Tensor& x) const { return norm(conv(x)); }
  TG_FIELDS(conv, norm)
};

}  // namespace tinygrad::apps
