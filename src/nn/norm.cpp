// Normalizing layers.
#include <fmt/core.h>

#include <algorithm>

#include <tinygrad/errors.h>
#include <tinygrad/nn.h>

#include "base/options.h"
#include "nn/named.h"
#include "nn/parameters.h"

namespace tinygrad::nn {

namespace {

/// (channels) as it meets x.
Tensor per_channel(const Tensor& t, const Tensor& x) {
  Sizes shape(static_cast<size_t>(x.ndim()), 1);
  shape[1] = -1;
  return t.reshape(shape);
}

/// The product of the sizes of these axes.
Extent count_along(const Tensor& x, const std::vector<int>& axes) {
  const Extents shape = x.symbolic_shape();
  Extent n = 1;
  for (const int a : axes) n = n * shape[static_cast<size_t>(a)];
  return n;
}

/// `factor` times the variance over these axes by the samples less one, of one that is by the samples.
Tensor unbiased_variance(const Tensor& x, const Tensor& variance, const std::vector<int>& axes, double factor) {
  const Extent n = count_along(x, axes);
  if (!n.known()) return x.var(axes) * factor;
  const auto samples = static_cast<double>(n.value());
  return variance * (samples > 1 ? factor * (samples / (samples - 1)) : factor);
}

/// x in at least float32, for all that is done to it before the result is rounded.
Tensor widened(const Tensor& x) { return x.cast(least_upper_dtype(x.dtype(), DType::float32)); }

/// The dtype of x times a weight plus a bias, either of which may be missing.
DType result_dtype(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  DType out = x.dtype();
  for (const Tensor* t : {&weight, &bias})
    if (t->defined()) out = least_upper_dtype(out, t->dtype());
  return out;
}

void check_size(std::string_view layer, std::string_view what, int64_t size) {
  if (size < 1) throw ValueError(fmt::format("{}: got {} {}, expects at least 1", layer, size, what));
}

}  // namespace

BatchNorm::BatchNorm(int64_t channels, const BatchNormOptions& options) : eps(options.eps), momentum(options.momentum) {
  check_size("BatchNorm", "channels", channels);
  if (options.affine) {
    weight = state(Tensor::ones({channels}));
    bias = state(Tensor::zeros({channels}));
  }
  if (!options.track_running_stats) return;
  num_batches_tracked = state(Tensor::zeros({}, {.dtype = DType::int64})).is_param_(false);
  running_mean = state(Tensor::zeros({channels})).is_param_(false);
  running_var = state(Tensor::ones({channels})).is_param_(false);
}

Tensor BatchNorm::operator()(const Tensor& x) const {
  return named(*this, "BatchNorm", [&] { return sizes_of(weight.defined() ? weight : running_mean); }, [&] { return normalized(x); });
}

Tensor BatchNorm::normalized(const Tensor& x) const {
  if (x.ndim() < 2) throw ShapeError(fmt::format("BatchNorm: got {}, expects (batch, channels, ...)", x.to_string()));
  for (const Tensor* t : {&weight, &bias, &running_mean, &running_var})
    if (t->defined() && t->numel() != x.size(1))
      throw ShapeError(fmt::format("BatchNorm: got {}, expects (batch, {}, ...)", x.to_string(), t->numel()));
  if (!current_options().training && running_mean.defined()) return x.batchnorm(weight, bias, running_mean, (running_var + eps).rsqrt());
  std::vector<int> others;
  for (int a = 0; a < x.ndim(); ++a)
    if (a != 1) others.push_back(a);
  const Tensor wide = widened(x), mean = wide.mean(others);
  const Tensor variance = (wide - per_channel(mean, x)).square().mean(others);
  if (running_mean.defined() && current_options().training) {
    Tensor(running_mean).assign((running_mean * (1 - momentum) + mean.detach() * momentum).cast(running_mean.dtype()));
    const Tensor unbiased = unbiased_variance(wide.detach(), variance.detach(), others, momentum);
    Tensor(running_var).assign((running_var * (1 - momentum) + unbiased).cast(running_var.dtype()));
    Tensor(num_batches_tracked).assign(num_batches_tracked + 1);
  }
  return wide.batchnorm(weight, bias, mean, (variance + eps).rsqrt()).cast(result_dtype(x, weight, bias));
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, const GroupNormOptions& options)
    : num_groups(groups), num_channels(channels), eps(options.eps) {
  if (groups < 1 || channels < 1 || channels % groups)
    throw ValueError(fmt::format("GroupNorm: {} groups do not divide {} channels", groups, channels));
  if (!options.affine) return;
  weight = state(Tensor::ones({channels}));
  bias = state(Tensor::zeros({channels}));
}

Tensor GroupNorm::operator()(const Tensor& x) const {
  return named(*this, "GroupNorm", [&] { return fmt::format("{} groups of {}", num_groups, num_channels); }, [&] { return normalized(x); });
}

Tensor GroupNorm::normalized(const Tensor& x) const {
  const Extents shape = x.symbolic_shape();
  if (shape.size() < 2 || shape[1] != num_channels)
    throw ShapeError(fmt::format("GroupNorm: got {}, expects (batch, {}, ...)", x.to_string(), num_channels));
  Extent rest = num_channels / num_groups;
  for (size_t a = 2; a < shape.size(); ++a) rest = rest * shape[a];
  Tensor y = widened(x).reshape({shape[0], num_groups, rest}).layernorm({-1}, eps).reshape(shape);
  if (weight.defined()) y = y * per_channel(weight, x);
  return (bias.defined() ? y + per_channel(bias, x) : y).cast(result_dtype(x, weight, bias));
}

LayerNorm::LayerNorm(const Sizes& last_axes, const LayerNormOptions& options) : normalized_shape(last_axes), eps(options.eps) {
  if (last_axes.empty()) throw ValueError("LayerNorm: got no axes to normalize over");
  for (int64_t s : last_axes) check_size("LayerNorm", "elements of an axis", s);
  if (!options.elementwise_affine) return;
  weight = state(Tensor::ones(last_axes));
  bias = state(Tensor::zeros(last_axes));
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  return named(*this, "LayerNorm", [&] { return joined(normalized_shape, ", "); }, [&] { return normalized(x); });
}

Tensor LayerNorm::normalized(const Tensor& x) const {
  const Extents shape = x.symbolic_shape();
  if (shape.size() < normalized_shape.size() || !std::equal(normalized_shape.rbegin(), normalized_shape.rend(), shape.rbegin()))
    throw ShapeError(
        fmt::format("LayerNorm: got {}, expects a tensor whose last axes are ({})", x.to_string(), joined(normalized_shape, ", ")));
  std::vector<int> axes;
  for (size_t i = normalized_shape.size(); i > 0; --i) axes.push_back(-static_cast<int>(i));
  Tensor y = widened(x).layernorm(axes, eps);
  if (weight.defined()) y = y * weight;
  return (bias.defined() ? y + bias : y).cast(result_dtype(x, weight, bias));
}

Tensor LayerNorm2d::operator()(const Tensor& x) const {
  return named(
      *this, "LayerNorm2d", [&] { return joined(normalized_shape, ", "); },
      [&] {
        if (x.ndim() != 4) throw ShapeError(fmt::format("LayerNorm2d: got {}, expects (batch, channels, height, width)", x.to_string()));
        if (normalized_shape != Sizes{x.size(1)})
          throw ShapeError(
              fmt::format("LayerNorm2d: got {}, expects (batch, {}, height, width)", x.to_string(), joined(normalized_shape, ", ")));
        return normalized(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
      });
}

RMSNorm::RMSNorm(int64_t size, const RMSNormOptions& options) : eps(options.eps) {
  check_size("RMSNorm", "elements", size);
  if (options.elementwise_affine) weight = state(Tensor::ones({size}));
}

Tensor RMSNorm::operator()(const Tensor& x) const {
  return named(*this, "RMSNorm", [&] { return sizes_of(weight); }, [&] { return normalized(x); });
}

Tensor RMSNorm::normalized(const Tensor& x) const {
  if (x.ndim() < 1 || (weight.defined() && x.size(-1) != weight.numel()))
    throw ShapeError(fmt::format("RMSNorm: got {}, expects a last axis of {}", x.to_string(),
                                 weight.defined() ? std::to_string(weight.numel()) + " elements" : "any size"));
  const Tensor wide = widened(x), y = wide * (wide.square().mean(-1, {.keepdim = true}) + eps).rsqrt();
  return (weight.defined() ? y * weight : y).cast(result_dtype(x, weight, {}));
}

}  // namespace tinygrad::nn
