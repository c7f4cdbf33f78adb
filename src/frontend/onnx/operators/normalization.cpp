// Normalizations, softmax and its kin, losses.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <numeric>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators.h"

namespace tinygrad::onnx {

namespace {

using Along = Tensor (*)(const Tensor& x, int axis);

Tensor softmax_along(const Tensor& x, int axis) { return x.softmax(axis); }
Tensor log_softmax_along(const Tensor& x, int axis) { return x.log_softmax(axis); }
/// 1 at the first of the greatest elements.
Tensor hardmax_along(const Tensor& x, int axis) {
  Sizes along(size_t(x.ndim()), 1);
  along[size_t(axis)] = x.size(axis);
  const Tensor first = x.argmax(axis, {.keepdim = true, .dtype = {}});
  return (Tensor::arange(x.size(axis), {.dtype = DType::int32}).reshape(along) == first).cast(x.dtype());
}

/// Versions before 13 take all axes from `axis` on as one.
template <Along f>
Results along_axis(Call& c) {
  const Tensor& x = c.tensor(0);
  const size_t rank = size_t(x.ndim());
  if (c.version() >= 13) return results(f(x, normal_axis(c, c.attribute("axis", -1), rank)));
  const int axis = normal_axis(c, c.attribute("axis", 1), rank);
  const Extents in = x.symbolic_shape();
  Extents flat{1, 1};
  for (size_t i = 0; i < rank; ++i) {
    Extent& count = flat[int(i) < axis ? 0 : 1];
    count = count * in[i];
  }
  return results(f(x.reshape(flat), 1).reshape(in));
}

/// A vector of channels beside x (batch, channels, spatial...).
Tensor by_channel(const Tensor& v, const Tensor& x) {
  if (x.ndim() < 2 || v.shape() != Sizes{x.size(1)})
    throw ShapeError(fmt::format("{} for each channel of {}", v.to_string(), x.to_string()));
  Sizes shape(size_t(x.ndim()) - 1, 1);
  shape[0] = v.numel();
  return v.reshape(shape);
}
std::vector<int> all_but_channels(int rank) {
  std::vector<int> out;
  for (int i = 0; i < rank; ++i)
    if (i != 1) out.push_back(i);
  return out;
}

Results batch_normalization(Call& c) {
  const Tensor& x = c.tensor(0);
  const int rank = x.ndim();
  const double epsilon = c.attribute("epsilon", 1e-5), momentum = c.attribute("momentum", 0.9);
  const bool trains = c.version() >= 14 ? c.flag("training_mode") : c.wants(1) || c.wants(2);
  const auto normalized = [&](const Tensor& mean, const Tensor& var) {
    if (c.version() < 9 && !c.flag("spatial", true) && c.tensor(1).ndim() > 1)
      return (x - mean) * (var + epsilon).rsqrt() * c.tensor(1) + c.tensor(2);
    const Tensor scale = c.tensor(1) * (var.cast(DType::float32) + epsilon).rsqrt().cast(c.tensor(1).dtype());
    return (x - by_channel(mean, x)) * by_channel(scale, x) + by_channel(c.tensor(2), x);
  };
  if (!trains) return results(normalized(c.tensor(3), c.tensor(4)).cast(x.dtype()));
  const std::vector<int> axes = all_but_channels(rank);
  const Tensor mean = x.mean(axes), var = x.var(axes, {.correction = 0});
  const auto running = [&](const Tensor& old, const Tensor& now) { return (old * momentum + now * (1 - momentum)).cast(old.dtype()); };
  return {Value(normalized(mean, var).cast(x.dtype())), Value(running(c.tensor(3), mean)), Value(running(c.tensor(4), var)), Value(mean),
          Value(var)};
}

/// Over the last axis, in float32 or wider.
Tensor standardized(const Tensor& x, double epsilon) {
  const Tensor wide = x.dtype() == DType::float64 ? x : x.cast(DType::float32);
  const Tensor centered = wide - wide.mean(-1, {.keepdim = true, .dtype = {}});
  return centered * ((centered * centered).mean(-1, {.keepdim = true, .dtype = {}}) + epsilon).rsqrt();
}

Results instance_normalization(Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor y = standardized(x.flatten(2), c.attribute("epsilon", 1e-5)).reshape(x.symbolic_shape()).cast(x.dtype());
  return results(y * by_channel(c.tensor(1), x) + by_channel(c.tensor(2), x));
}

Results group_normalization(Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t groups = c.required_integer("num_groups"), channels = x.size(1);
  if (groups < 1 || channels % groups != 0) c.fail(fmt::format("{} groups of {} channels", groups, channels));
  const Tensor y = standardized(x.reshape({x.size(0), groups, -1}), c.attribute("epsilon", 1e-5)).cast(x.dtype());
  Tensor scale = c.tensor(1), bias = c.tensor(2);
  if (scale.numel() != channels) {  // version 18 has them for each group
    scale = scale.repeat_interleave(channels / groups);
    bias = bias.repeat_interleave(channels / groups);
  }
  return results(y.reshape(x.shape()) * by_channel(scale, x) + by_channel(bias, x));
}

std::vector<int> axes_from(const Call& c, int rank) {
  std::vector<int> out;
  for (int i = normal_axis(c, c.attribute("axis", -1), size_t(rank)); i < rank; ++i) out.push_back(i);
  return out;
}
DType stash_dtype(const Call& c) {
  const ElementType type = c.type_attribute("stash_type", ElementType::float32);
  if (!is_float(dtype_of(type)) || is_fp8(dtype_of(type))) c.fail(fmt::format("the stash_type {}", name(type)));
  return dtype_of(type);
}

Results layer_normalization(Call& c) {
  const Tensor& x = c.tensor(0);
  const std::vector<int> axes = axes_from(c, x.ndim());
  const ReduceOptions kept{.keepdim = true, .dtype = {}};
  const Tensor wide = x.dtype() == DType::float64 ? x : x.cast(stash_dtype(c));
  const Tensor mean = wide.mean(axes, kept), centered = wide - mean;
  const Tensor inverse = ((centered * centered).mean(axes, kept) + c.attribute("epsilon", 1e-5)).rsqrt();
  Tensor y = (centered * inverse).cast(x.dtype()) * c.tensor(1);
  if (c.has(2)) y = y + c.tensor(2);
  return {Value(y.cast(x.dtype())), Value(mean.cast(stash_dtype(c))), Value(inverse.cast(stash_dtype(c)))};
}

Results rms_normalization(Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor wide = x.dtype() == DType::float64 ? x : x.cast(stash_dtype(c));
  const Tensor mean = (wide * wide).mean(axes_from(c, x.ndim()), {.keepdim = true, .dtype = {}});
  const Tensor normalized = (wide * (mean + c.attribute("epsilon", 1e-5)).rsqrt()).cast(x.dtype());
  return results((normalized * c.tensor(1)).cast(c.tensor(1).dtype()));
}

/// Divided by what the squares of neighbouring channels sum to.
Results local_response_normalization(Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t size = c.required_integer("size");
  if (size < 1 || x.ndim() < 2) c.fail(fmt::format("{} channels of {}", size, x.to_string()));
  // What lies beyond all channels adds nothing.
  const int64_t before = std::min((size - 1) / 2, x.size(1)), after = std::min(size - 1 - (size - 1) / 2, x.size(1));
  std::vector<std::pair<int64_t, int64_t>> amounts(size_t(x.ndim()), {0, 0});
  amounts[1] = {before, after};
  const Tensor sums = (x * x).pad(amounts).unfold(1, before + 1 + after, 1).sum(-1);
  const Tensor base = sums * (c.attribute("alpha", 1e-4) / double(size)) + c.attribute("bias", 1.0);
  return results(x / base.pow(c.attribute("beta", 0.75)));
}

Results mean_variance_normalization(Call& c) {
  const Tensor& x = c.tensor(0);
  const std::vector<int> axes = normal_axes(c, c.attribute("axes", std::vector<int64_t>{0, 2, 3}), size_t(x.ndim()));
  const ReduceOptions kept{.keepdim = true, .dtype = {}};
  const Tensor mean = x.mean(axes, kept);
  const Tensor deviation = ((x * x).mean(axes, kept) - mean * mean).sqrt();
  return results((x - mean) / (deviation + 1e-9));
}

/// 0 where the norm is.
Results lp_normalization(Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = normal_axis(c, c.attribute("axis", -1), size_t(x.ndim()));
  const int64_t p = c.attribute("p", 2);
  if (p != 1 && p != 2) c.fail(fmt::format("the order {}", p));
  const ReduceOptions kept{.keepdim = true, .dtype = {}};
  const Tensor norm = p == 1 ? x.abs().sum(axis, kept) : (x * x).sum(axis, kept).sqrt();
  return results((norm == 0).where(0, x / (norm == 0).where(1, norm)));
}

Results dropout(Call& c) {
  const Tensor& x = c.tensor(0);
  const double ratio = c.version() < 12 ? c.attribute("ratio", 0.5) : c.has(1) ? c.number(1) : 0.5;
  if (!(ratio >= 0 && ratio < 1)) c.fail(fmt::format("the ratio {}", ratio));
  const bool trains = c.version() >= 12 && c.has(2) && c.integer(2) != 0;
  const DType mask_dtype = c.version() >= 10 ? DType::bool_ : x.dtype();
  if (!trains || ratio == 0) return {c.value(0), Value(Tensor::full(x.shape(), 1, {.dtype = mask_dtype}))};
  const Tensor stays = Tensor::rand(x.shape()) >= ratio;
  return {Value((stays.where(x, 0) / (1 - ratio)).cast(x.dtype())), Value(stays.cast(mask_dtype))};
}

/// Of the logarithms of probabilities (batch, classes, ...) and classes (batch, ...).
Tensor negative_log_likelihood(const Call& c, const Tensor& x) {
  const Tensor target = c.tensor(1).cast(DType::int64), weight = c.tensor_or_none(2);
  const std::string reduction = c.choice("reduction", {"mean", "sum", "none"});
  Sizes wanted = x.shape();
  if (wanted.size() < 2) c.fail(fmt::format("expects classes along axis 1, got {}", x.to_string()));
  wanted.erase(wanted.begin() + 1);
  if (target.shape() != wanted || (weight.defined() && weight.shape() != Sizes{x.size(1)}))
    throw ShapeError(fmt::format("targets or weights of another shape than {} has them", x.to_string()));
  Tensor is_ignored, chosen = target;
  if (c.has_attribute("ignore_index")) {
    is_ignored = target == c.attribute("ignore_index", 0);
    chosen = is_ignored.where(0, target);
  }
  Tensor loss = -x.gather(1, chosen.unsqueeze(1)).squeeze(1);
  Tensor weights = weight.defined() ? weight[chosen] : loss.ones_like();
  if (is_ignored.defined()) weights = is_ignored.where(0, weights);
  loss = loss * weights;
  if (reduction == "none") return loss;
  if (reduction == "sum") return loss.sum().cast(x.dtype());
  return (loss.sum() / weights.sum()).cast(x.dtype());
}
Results negative_log_likelihood_loss(Call& c) { return results(negative_log_likelihood(c, c.tensor(0))); }
Results softmax_cross_entropy_loss(Call& c) {
  const Tensor log_prob = c.tensor(0).log_softmax(1);
  return {Value(negative_log_likelihood(c, log_prob)), Value(log_prob)};
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "BatchNormalization", 1, batch_normalization},
    {onnx_domain, "Dropout", 1, dropout},
    {onnx_domain, "GroupNormalization", 18, group_normalization},
    {onnx_domain, "Hardmax", 1, along_axis<hardmax_along>},
    {onnx_domain, "InstanceNormalization", 1, instance_normalization},
    {onnx_domain, "LRN", 1, local_response_normalization},
    {onnx_domain, "LayerNormalization", 1, layer_normalization},  // exports before version 17 use onnxruntime's
    {onnx_domain, "LogSoftmax", 1, along_axis<log_softmax_along>},
    {onnx_domain, "LpNormalization", 1, lp_normalization},
    {onnx_domain, "MeanVarianceNormalization", 9, mean_variance_normalization},
    {onnx_domain, "NegativeLogLikelihoodLoss", 12, negative_log_likelihood_loss},
    {onnx_domain, "RMSNormalization", 23, rms_normalization},
    {onnx_domain, "Softmax", 1, along_axis<softmax_along>},
    {onnx_domain, "SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy_loss},
};

}  // namespace

std::span<const OperatorRow> normalization_operators() { return rows; }

}  // namespace tinygrad::onnx
