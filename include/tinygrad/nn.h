#pragma once
/// Layers. Weights are drawn from the process's random sequence (Tensor::manual_seed), as PyTorch's layers draw theirs. A layer made of no
/// arguments has no tensors, until it is assigned.

#include <cstdint>
#include <optional>
#include <utility>

#include <tinygrad/module.h>
#include <tinygrad/tensor.h>

namespace tinygrad::nn {

struct LinearOptions {
  bool bias = true;
};

/// x @ weight^T + bias: (..., in) to (..., out). Weight and bias are drawn from +-1 / sqrt(in).
struct TINYGRAD_EXPORT Linear : Module {
  Tensor weight;  ///< (out, in)
  Tensor bias;    ///< (out); may be undefined
  Linear() = default;
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
  bool same = false;  ///< padding by which the output has the size of the input, for a stride of 1 (tinygrad's padding="same")
};

/// What convolutions have.
struct TINYGRAD_EXPORT Convolution : Module {
  Tensor weight;
  Tensor bias;        ///< (out); may be undefined
  Sizes kernel_size;  ///< one an axis
  Sizes stride, padding, dilation;
  int64_t groups = 1;
  TG_FIELDS(weight, bias)

 protected:
  Convolution() = default;
  template <class Options>
  Convolution(const Sizes& kernel, const Options& o)
      : kernel_size(kernel), stride(o.stride), padding(o.padding), dilation(o.dilation), groups(o.groups) {}
};

/// (batch, in, height, width) to (batch, out, height', width'). Weight (out, in / groups, kernel...) and bias are drawn from
/// +-1 / sqrt(in * kernel). Throws ValueError for groups that do not divide the channels, and for `same` with a stride.
struct TINYGRAD_EXPORT Conv2d : Convolution {
  Conv2d() = default;
  /// `kernel`: one number an axis, as many as the input has: one axis makes it what Conv1d is.
  Conv2d(int64_t in_channels, int64_t out_channels, const Sizes& kernel, const Conv2dOptions& options = {});
  Conv2d(int64_t in_channels, int64_t out_channels, int64_t kernel, const Conv2dOptions& options = {})
      : Conv2d(in_channels, out_channels, Sizes{kernel, kernel}, options) {}
  Tensor operator()(const Tensor& x) const;
};

/// (batch, in, length) to (batch, out, length').
struct TINYGRAD_EXPORT Conv1d : Conv2d {
  Conv1d() = default;
  Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel, const Conv2dOptions& options = {})
      : Conv2d(in_channels, out_channels, Sizes{kernel}, options) {}
};

struct ConvTranspose2dOptions {
  Sizes stride = {1}, padding = {0}, output_padding = {0}, dilation = {1};
  int64_t groups = 1;
  bool bias = true;
};

/// The adjoint of a convolution: (batch, in, height, width) to (batch, out, height', width'). Weight (in, out / groups, kernel...) and bias
/// are drawn and checked as those of Conv2d.
struct TINYGRAD_EXPORT ConvTranspose2d : Convolution {
  Sizes output_padding;
  ConvTranspose2d() = default;
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, const Sizes& kernel, const ConvTranspose2dOptions& options = {});
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, int64_t kernel, const ConvTranspose2dOptions& options = {})
      : ConvTranspose2d(in_channels, out_channels, Sizes{kernel, kernel}, options) {}
  Tensor operator()(const Tensor& x) const;
};

/// (batch, in, length) to (batch, out, length').
struct TINYGRAD_EXPORT ConvTranspose1d : ConvTranspose2d {
  ConvTranspose1d() = default;
  ConvTranspose1d(int64_t in_channels, int64_t out_channels, int64_t kernel, const ConvTranspose2dOptions& options = {})
      : ConvTranspose2d(in_channels, out_channels, Sizes{kernel}, options) {}
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
  Tensor weight, bias;                                    ///< (channels); undefined unless affine
  Tensor num_batches_tracked, running_mean, running_var;  ///< undefined unless tracked
  double eps = 1e-5, momentum = 0.1;
  BatchNorm() = default;
  explicit BatchNorm(int64_t channels, const BatchNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  TG_FIELDS(weight, bias, num_batches_tracked, running_mean, running_var)

 private:
  Tensor normalized(const Tensor& x) const;
};
using BatchNorm2d = BatchNorm;
using BatchNorm3d = BatchNorm;

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};

/// Normalizes each group of channels (axis 1) of each example, over the axes after it too (Wu and He, 2018). Throws ValueError for groups
/// that do not divide the channels, and ShapeError for an input with other channels.
struct TINYGRAD_EXPORT GroupNorm : Module {
  Tensor weight, bias;  ///< (channels); undefined unless affine
  int64_t num_groups = 1, num_channels = 1;
  double eps = 1e-5;
  GroupNorm() = default;
  GroupNorm(int64_t groups, int64_t channels, const GroupNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  TG_FIELDS(weight, bias)

 private:
  Tensor normalized(const Tensor& x) const;
};

using InstanceNormOptions = GroupNormOptions;

/// Normalizes each channel of each example (Ulyanov, Vedaldi and Lempitsky, 2016).
struct TINYGRAD_EXPORT InstanceNorm : GroupNorm {
  InstanceNorm() = default;
  explicit InstanceNorm(int64_t features, const InstanceNormOptions& options = {}) : GroupNorm(features, features, options) {}
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
};

/// Normalizes over the last axes (Ba, Kiros and Hinton, 2016).
struct TINYGRAD_EXPORT LayerNorm : Module {
  Tensor weight, bias;  ///< of the normalized shape; undefined unless affine
  Sizes normalized_shape;
  double eps = 1e-5;
  LayerNorm() = default;
  explicit LayerNorm(const Sizes& last_axes, const LayerNormOptions& options = {});
  explicit LayerNorm(int64_t size, const LayerNormOptions& options = {}) : LayerNorm(Sizes{size}, options) {}
  Tensor operator()(const Tensor& x) const;
  TG_FIELDS(weight, bias)

 protected:
  Tensor normalized(const Tensor& x) const;
};

/// Normalizes (batch, channels, height, width) over the channels.
struct TINYGRAD_EXPORT LayerNorm2d : LayerNorm {
  using LayerNorm::LayerNorm;
  Tensor operator()(const Tensor& x) const;
};

struct RMSNormOptions {
  double eps = 1e-6;
  bool elementwise_affine = true;
};

/// Divides the last axis by the root of its mean square (Zhang and Sennrich, 2019), computed in float32 or wider.
struct TINYGRAD_EXPORT RMSNorm : Module {
  Tensor weight;  ///< (size); undefined unless affine
  double eps = 1e-6;
  RMSNorm() = default;
  explicit RMSNorm(int64_t size, const RMSNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  TG_FIELDS(weight)

 private:
  Tensor normalized(const Tensor& x) const;
};

/// Rows of a table: indices (...) to (..., size). Throws DTypeError unless they are integers.
struct TINYGRAD_EXPORT Embedding : Module {
  Tensor weight;  ///< (vocabulary, size)
  Embedding() = default;
  Embedding(int64_t vocabulary_size, int64_t embedding_size);
  Tensor operator()(const Tensor& indices) const;
  TG_FIELDS(weight)
};

struct LSTMCellOptions {
  bool bias = true;
};

/// One step of a long short-term memory (Hochreiter and Schmidhuber, 1997). Weights hold the gates input, forget, cell and output.
struct TINYGRAD_EXPORT LSTMCell : Module {
  Tensor weight_ih, weight_hh;  ///< (4 hidden, input), (4 hidden, hidden)
  Tensor bias_ih, bias_hh;      ///< (4 hidden), zeros at first; may be undefined
  using State = std::pair<Tensor, Tensor>;
  LSTMCell() = default;
  LSTMCell(int64_t input_size, int64_t hidden_size, const LSTMCellOptions& options = {});
  /// From x (batch, input) and the state (h, c), each (batch, hidden), the next state; zeros come before the first.
  State operator()(const Tensor& x, const std::optional<State>& state = {}) const;
  TG_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)

 private:
  State step(const Tensor& x, const std::optional<State>& state) const;
};

}  // namespace tinygrad::nn
