#pragma once
/// Gradients kept within bounds between backward() and an optimizer's step().

#include <initializer_list>
#include <span>

#include <tinygrad/export.h>
#include <tinygrad/tensor.h>

namespace tinygrad::nn::utils {

struct ClipNormOptions {
  double norm_type = 2.0;           ///< p of the p-norm; infinity for the greatest magnitude
  bool error_if_nonfinite = false;  ///< ValueError, before any gradient changes, for a norm that is NaN or infinite; reads it back
};

/// The p-norm of all gradients together, float32 or wider, of shape (); where it is above `max_norm`, the gradients are scaled down to it.
/// They stay lazy where they are, and stay the same tensors. Tensors without a gradient are passed over; 0 if none has one. ValueError for
/// a norm_type that is not above 0 and a max_norm below 0.
TINYGRAD_EXPORT Tensor clip_grad_norm_(std::span<const Tensor> params, double max_norm, const ClipNormOptions& options = {});
inline Tensor clip_grad_norm_(std::initializer_list<Tensor> params, double max_norm, const ClipNormOptions& options = {}) {
  return clip_grad_norm_(std::span<const Tensor>(params.begin(), params.size()), max_norm, options);
}

/// Every element of every gradient within [-clip_value, clip_value]. ValueError for one below 0.
TINYGRAD_EXPORT void clip_grad_value_(std::span<const Tensor> params, double clip_value);

}  // namespace tinygrad::nn::utils
