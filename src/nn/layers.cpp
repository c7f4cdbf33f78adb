#include <fmt/core.h>

#include <cmath>

#include <tinygrad/errors.h>
#include <tinygrad/nn.h>

#include "base/options.h"

namespace tinygrad::nn {

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options) {
  const double bound = 1 / std::sqrt(static_cast<double>(in_features));
  weight = Tensor::uniform({out_features, in_features}, -bound, bound);
  if (options.bias) bias = Tensor::uniform({out_features}, -bound, bound);
}

Tensor Linear::operator()(const Tensor& x) const { return x.linear(weight.transpose(), bias); }

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, const Sizes& kernel_size, const Conv2dOptions& options)
    : options_{options.groups, options.stride, options.dilation, options.padding, {}} {
  if (options.groups < 1 || in_channels % options.groups || out_channels % options.groups)
    throw ValueError(
        fmt::format("Conv2d: {} groups do not divide {} input and {} output channels", options.groups, in_channels, out_channels));
  Sizes shape{out_channels, in_channels / options.groups};
  const Sizes kernel = kernel_size.size() == 1 ? Sizes{kernel_size[0], kernel_size[0]} : kernel_size;
  double fan_in = static_cast<double>(shape[1]);
  for (int64_t k : kernel) {
    shape.push_back(k);
    fan_in *= static_cast<double>(k);
  }
  const double bound = 1 / std::sqrt(fan_in);
  weight = Tensor::uniform(shape, -bound, bound);
  if (options.bias) bias = Tensor::uniform({out_channels}, -bound, bound);
}

Tensor Conv2d::operator()(const Tensor& x) const { return x.conv2d(weight, bias, options_); }

BatchNorm::BatchNorm(int64_t channels, const BatchNormOptions& options) : options_(options) {
  if (options.affine) {
    weight = Tensor::ones({channels});
    bias = Tensor::zeros({channels});
  }
  if (!options.track_running_stats) return;
  num_batches_tracked = Tensor::zeros({}, {.dtype = DType::int64}).clone().is_param_(false);
  running_mean = Tensor::zeros({channels}).clone().is_param_(false);
  running_var = Tensor::ones({channels}).clone().is_param_(false);
}

namespace {

/// (channels) as it meets x.
Tensor per_channel(const Tensor& t, const Tensor& x) {
  Sizes shape(static_cast<size_t>(x.ndim()), 1);
  shape[1] = -1;
  return t.reshape(shape);
}

}  // namespace

Tensor BatchNorm::operator()(const Tensor& x) const {
  if (x.ndim() < 2) throw ShapeError(fmt::format("BatchNorm: got {}, expects (batch, channels, ...)", x.to_string()));
  if (!current_options().training && running_mean.defined())
    return x.batchnorm(weight, bias, running_mean, (running_var + options_.eps).rsqrt());
  std::vector<int> others;
  for (int a = 0; a < x.ndim(); ++a)
    if (a != 1) others.push_back(a);
  const Tensor mean = x.mean(others);
  const Tensor variance = (x - per_channel(mean, x)).square().mean(others);
  if (running_mean.defined() && current_options().training) {
    const double m = options_.momentum, n = static_cast<double>(x.numel()), samples = n / static_cast<double>(x.size(1));
    const double unbiased = samples > 1 ? samples / (samples - 1) : 1;
    Tensor(running_mean).assign((running_mean * (1 - m) + mean.detach() * m).cast(running_mean.dtype()));
    Tensor(running_var).assign((running_var * (1 - m) + variance.detach() * (m * unbiased)).cast(running_var.dtype()));
    Tensor(num_batches_tracked).assign(num_batches_tracked + 1);
  }
  return x.batchnorm(weight, bias, mean, (variance + options_.eps).rsqrt());
}

LayerNorm::LayerNorm(const Sizes& normalized_shape, const LayerNormOptions& options)
    : normalized_shape_(normalized_shape), eps_(options.eps) {
  if (!options.elementwise_affine) return;
  weight = Tensor::ones(normalized_shape);
  bias = Tensor::zeros(normalized_shape);
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  const Sizes shape = x.shape();
  if (shape.size() < normalized_shape_.size() || !std::equal(normalized_shape_.rbegin(), normalized_shape_.rend(), shape.rbegin()))
    throw ShapeError(fmt::format("LayerNorm: got {}, the last axes of which are not those it was made for", x.to_string()));
  std::vector<int> axes;
  for (size_t i = normalized_shape_.size(); i > 0; --i) axes.push_back(-static_cast<int>(i));
  const Tensor y = x.layernorm(axes, eps_);
  return weight.defined() ? y * weight + bias : y;
}

Embedding::Embedding(int64_t vocabulary_size, int64_t embedding_size) {
  weight = Tensor::glorot_uniform({vocabulary_size, embedding_size});
}

Tensor Embedding::operator()(const Tensor& indices) const { return weight[indices]; }

}  // namespace tinygrad::nn
