#pragma once
/// Windows that slide over the spatial axes of (batch, channels, spatial...), as convolutions and poolings describe them.

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

/// One number for each spatial axis.
struct Geometry {
  Sizes kernel, strides, dilations;
  Sizes begin, end;  ///< padding
  bool rounds_up = false;

  size_t axes() const { return kernel.size(); }
  /// What a window spans, less than 2^48.
  int64_t span(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  /// How many windows there are; the last one begins within the elements or the padding before them.
  int64_t outputs(size_t axis, int64_t size) const;
};

/// From the attributes kernel_shape, strides, dilations, pads and auto_pad, and of `kernel` where the first is absent.
Geometry geometry_of(const Call& call, const Extents& spatial, const Sizes& kernel);
/// (before, after) pairs of the last axis first, as Tensor::conv2d() takes them.
Sizes conv_padding(const Geometry& g);
/// (batch, channels, outputs..., kernel...), padded with `fill`. Along a size that is known when kernels run some windows have to fit,
/// whose number is not rounded up.
Tensor windows(const Tensor& x, const Geometry& g, const Operand& fill);

/// x with (channels, spatial...) weights, grouped; the bias may be undefined. Sums and results are of `dtype`, if one is given.
Tensor convolve(const Call& call, const Tensor& x, const Tensor& weight, const Tensor& bias, std::optional<DType> dtype = {});

}  // namespace tinygrad::onnx
