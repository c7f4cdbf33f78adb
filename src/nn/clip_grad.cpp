#include <tinygrad/clip_grad.h>

#include <cmath>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "nn/require.h"

namespace tinygrad::nn::utils {

namespace {

std::vector<Tensor> gradients_of(std::span<const Tensor> params) {
  std::vector<Tensor> out;
  for (const Tensor& p : params)
    if (const Tensor g = p.grad(); g.defined()) out.push_back(g);
  return out;
}

/// The p-norm of the elements, in float32 or wider.
Tensor norm_of(const Tensor& x, double p) {
  const Tensor magnitude = x.detach().cast(least_upper_dtype(x.dtype(), DType::float32)).abs();
  if (std::isinf(p)) return magnitude.max();
  return p == 2 ? magnitude.square().sum().sqrt() : magnitude.pow(p).sum().pow(1 / p);
}

}  // namespace

Tensor clip_grad_norm_(std::span<const Tensor> params, double max_norm, const ClipNormOptions& options) {
  require(options.norm_type > 0, "clip_grad_norm_", "norm_type", options.norm_type, "above 0");
  require(max_norm >= 0, "clip_grad_norm_", "max_norm", max_norm, "at least 0");
  std::vector<Tensor> grads = gradients_of(params);
  if (grads.empty()) return Tensor(0.0);
  std::vector<Tensor> norms;
  for (const Tensor& g : grads) norms.push_back(norm_of(g, options.norm_type).to(grads[0].device()));
  const Tensor total = norms.size() == 1 ? norms[0] : norm_of(Tensor::stack(norms), options.norm_type);
  if (options.error_if_nonfinite && !std::isfinite(total.item()))
    throw ValueError(
        fmt::format("clip_grad_norm_: the norm of the gradients is {}; look for what is not finite, or set "
                    "error_if_nonfinite to false",
                    total.item()));
  const Tensor factor = (max_norm / (total + 1e-6)).clamp({}, 1.0);
  for (Tensor& g : grads) g.assign((g * factor.to(g.device())).cast(g.dtype()));
  return total;
}

void clip_grad_value_(std::span<const Tensor> params, double clip_value) {
  require(clip_value >= 0, "clip_grad_value_", "clip_value", clip_value, "at least 0");
  for (Tensor& g : gradients_of(params)) g.assign(g.clamp(-clip_value, clip_value));
}

}  // namespace tinygrad::nn::utils
