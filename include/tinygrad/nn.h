#pragma once
/// Layers. Weights are drawn from the process's random sequence (Tensor::manual_seed), as PyTorch's layers draw theirs.

#include <tinygrad/module.h>
#include <tinygrad/tensor.h>

namespace tinygrad::nn {

struct LinearOptions {
  bool bias = true;
};

/// x @ weight^T + bias: (..., in) to (..., out).
struct TINYGRAD_EXPORT Linear : Module {
  Tensor weight;  ///< (out, in)
  Tensor bias;    ///< (out); may be undefined
  Linear(int64_t in_features, int64_t out_features, const LinearOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  TG_FIELDS(weight, bias)
};

struct Conv2dOptions {
  Sizes stride = {1};
  Sizes padding = {0};  ///< one number, one an axis, or (left, right, top, bottom)
  Sizes dilation = {1};
  int64_t groups = 1;
  bool bias = true;
};

/// (batch, in, height, width) to (batch, out, height', width').
struct TINYGRAD_EXPORT Conv2d : Module {
  Tensor weight;  ///< (out, in / groups, kernel...)
  Tensor bias;    ///< (out); may be undefined
  /// `kernel_size`: one number, or one an axis.
  Conv2d(int64_t in_channels, int64_t out_channels, const Sizes& kernel_size, const Conv2dOptions& options = {});
  Conv2d(int64_t in_channels, int64_t out_channels, int64_t kernel_size, const Conv2dOptions& options = {})
      : Conv2d(in_channels, out_channels, Sizes{kernel_size}, options) {}
  Tensor operator()(const Tensor& x) const;
  TG_FIELDS(weight, bias)

 private:
  ConvOptions options_;
};

struct BatchNormOptions {
  double eps = 1e-5;
  bool affine = true;
  bool track_running_stats = true;
  double momentum = 0.1;
};

/// Normalizes each channel (axis 1) by the mean and variance of the batch while the option `training` is on, which also updates the
/// running ones; by the running ones otherwise (Ioffe and Szegedy, 2015).
struct TINYGRAD_EXPORT BatchNorm : Module {
  Tensor weight, bias;  ///< (channels); undefined unless affine
  Tensor num_batches_tracked, running_mean, running_var;
  explicit BatchNorm(int64_t channels, const BatchNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  TG_FIELDS(weight, bias, num_batches_tracked, running_mean, running_var)

 private:
  BatchNormOptions options_;
};
using BatchNorm2d = BatchNorm;

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
};

/// Normalizes over the last axes (Ba, Kiros and Hinton, 2016).
struct TINYGRAD_EXPORT LayerNorm : Module {
  Tensor weight, bias;  ///< of the normalized shape; undefined unless affine
  explicit LayerNorm(const Sizes& normalized_shape, const LayerNormOptions& options = {});
  explicit LayerNorm(int64_t size, const LayerNormOptions& options = {}) : LayerNorm(Sizes{size}, options) {}
  Tensor operator()(const Tensor& x) const;
  TG_FIELDS(weight, bias)

 private:
  Sizes normalized_shape_;
  double eps_;
};

/// Rows of a table: indices (...) to (..., size).
struct TINYGRAD_EXPORT Embedding : Module {
  Tensor weight;  ///< (vocabulary, size)
  Embedding(int64_t vocabulary_size, int64_t embedding_size);
  Tensor operator()(const Tensor& indices) const;
  TG_FIELDS(weight)
};

}  // namespace tinygrad::nn
