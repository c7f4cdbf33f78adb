#pragma once
/// Products, convolutions, normalizations and losses as functions.

#include <functional>
#include <optional>

#include <tinygrad/op_arguments.h>

#include "ops/operand.h"

namespace tinygrad::ops {

/// Numbers per spatial axis, or one for all.
class PerAxis {
 public:
  PerAxis(int64_t all) : values_{all} {}
  PerAxis(std::initializer_list<int64_t> values) : values_(values) {}
  PerAxis(std::span<const int64_t> values) : values_(values) {}
  /// `count` numbers; ValueError naming `op` and `what`.
  SmallVector<int64_t, 4> resolve(std::string_view op, std::string_view what, size_t count) const;
  size_t size() const { return values_.size(); }
  int64_t operator[](size_t i) const { return values_[i]; }

 private:
  SmallVector<int64_t, 4> values_;
};

/// The matrix product over the last axis of `a` and the last but one of `b`, broadcast over the axes before; a vector is a row on the
/// left and a column on the right. Narrow floats accumulate in float32; `dtype` is that of accumulation and result.
UOp matmul(const UOp& a, const UOp& b, std::optional<DType> dtype = {});
/// x @ weight + bias; a weight vector multiplies element by element.
UOp linear(const UOp& x, const UOp& weight, const UOp& bias = {}, std::optional<DType> dtype = {});
/// Einstein summation, "ij,jk->ik"; "..." stands for leading axes, a letter twice in one operand takes the diagonal.
UOp einsum(std::string_view formula, std::span<const UOp> operands, std::optional<DType> dtype = {});

/// Whether convolutions that it suits are computed by Winograd's method (ops/winograd.h): where it pays, or where it does with windows
/// that are transformed once for many images.
enum class Winograd : uint8_t { never, where_it_pays, with_fixed_windows, always };

/// Padding of spatial axes: one number, one an axis, or (left, right, top, bottom, ...), the last axis first.
struct ConvOptions {
  int64_t groups = 1;
  PerAxis stride = 1;
  PerAxis dilation = 1;
  PerAxis padding = 0;
  std::optional<DType> dtype = {};
  Winograd winograd = Winograd::never;
};
/// x (batch, in, spatial...) with weight (out, in / groups, spatial...): any number of spatial axes.
UOp conv2d(const UOp& x, const UOp& weight, const UOp& bias = {}, const ConvOptions& options = {});
struct ConvTransposeOptions {
  int64_t groups = 1;
  PerAxis stride = 1;
  PerAxis dilation = 1;
  PerAxis padding = 0;
  PerAxis output_padding = 0;
};
/// The transpose of conv2d; weight (in, out / groups, spatial...).
UOp conv_transpose2d(const UOp& x, const UOp& weight, const UOp& bias = {}, const ConvTransposeOptions& options = {});

struct PoolOptions {
  PerAxis kernel_size = {2, 2};
  std::optional<PerAxis> stride = {};  ///< by default the kernel size
  PerAxis dilation = 1;
  PerAxis padding = 0;
  bool ceil_mode = false;  ///< the last window may hang over the end
  bool count_include_pad = true;
};
/// Over the last axes, as many as kernel_size has.
UOp avg_pool2d(const UOp& x, const PoolOptions& options = {});
UOp max_pool2d(const UOp& x, const PoolOptions& options = {});
/// Where max_pool2d found its values: the first index in the flattened spatial axes, int32.
UOp max_pool2d_indices(const UOp& x, const PoolOptions& options = {});
/// Values put back where max_pool2d_indices says, zeros elsewhere; output sizes by default the least that pool to x.
UOp max_unpool2d(const UOp& x, const UOp& indices, const PoolOptions& options = {}, const std::optional<Shape>& output_size = {});

/// (x - mean) / sqrt(variance + eps) over the axes.
UOp layernorm(const UOp& x, const Axes& axes = {-1}, double eps = 1e-5);
/// (x - mean) * invstd * weight + bias, each along `axes`; weight and bias may be null.
UOp batchnorm(const UOp& x, const UOp& weight, const UOp& bias, const UOp& mean, const UOp& invstd, const Axes& axes = {1});

struct AttentionOptions {
  UOp mask = {};  ///< bool (true: attend) or a number to add
  bool is_causal = false;
  bool enable_gqa = false;  ///< heads of query may be a multiple of those of key and value
  /// Applied to the weights: the caller's dropout.
  std::function<UOp(const UOp&)> dropout = {};
};
/// softmax(q k^T / sqrt(d)) v over the last two axes (Vaswani et al., 2017).
UOp scaled_dot_product_attention(const UOp& query, const UOp& key, const UOp& value, const AttentionOptions& options = {});

/// The loss of probabilities x against targets y.
UOp binary_crossentropy(const UOp& x, const UOp& y, Reduction reduction = Reduction::mean, const OpsContext& ctx = {});
/// The loss of logits; pos_weight may be null.
UOp binary_crossentropy_logits(const UOp& x, const UOp& y, Reduction reduction = Reduction::mean, const UOp& pos_weight = {},
                               const OpsContext& ctx = {});
/// The class index that does not count where no other one is named, as PyTorch's. Any other index that is no class has the loss NaN.
inline constexpr int64_t ignored_target = -100;
/// The loss of logits (..., classes) against class indices (...). The mean is over the targets that are not `ignore_index`, by default
/// `ignored_target`.
UOp sparse_categorical_crossentropy(const UOp& x, const UOp& y, std::optional<int64_t> ignore_index = {}, double label_smoothing = 0.0,
                                    Reduction reduction = Reduction::mean, const OpsContext& ctx = {});
/// The loss of logits (batch, classes, ...) against class indices (batch, ...) or probabilities of x's shape.
UOp cross_entropy(const UOp& x, const UOp& y, std::optional<int64_t> ignore_index = {}, Reduction reduction = Reduction::mean,
                  double label_smoothing = 0.0, const OpsContext& ctx = {});
/// The loss of log-probabilities (batch, classes, ...) against class indices (batch, ...); `weight`, per class, may be null.
UOp nll_loss(const UOp& x, const UOp& y, const UOp& weight = {}, std::optional<int64_t> ignore_index = {},
             Reduction reduction = Reduction::mean, const OpsContext& ctx = {});

}  // namespace tinygrad::ops
