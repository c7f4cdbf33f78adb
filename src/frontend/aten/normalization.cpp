// Normalizations over batches, layers and groups.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

/// The dtype of saved statistics: that of the parameters where there are any.
DType statistics_type(const Tensor& x, const Tensor& weight) { return weight.defined() ? weight.dtype() : x.dtype(); }
/// A value for each channel, the second axis, beside `x`.
Tensor per_channel(const Tensor& v, const Tensor& x) {
  Sizes shape(size_t(x.ndim()), 1);
  shape[1] = v.numel();
  return v.reshape(shape);
}
std::vector<int> all_but_channels(const Tensor& x) {
  std::vector<int> out;
  for (int i = 0; i < x.ndim(); ++i)
    if (i != 1) out.push_back(i);
  return out;
}

struct BatchNorm {
  Tensor out, mean, rstd;  ///< of the batch
  Tensor variance;         ///< biased, of the batch; undefined where the running one was used
};
BatchNorm batch_norm_of(const Call& c, bool training) {
  const Tensor x = c.tensor("input"), weight = c.tensor("weight"), bias = c.tensor("bias");
  if (x.ndim() < 2) c.fail("an input without channels");
  const DType wide = wide_type(x.dtype());
  const Tensor given = x.cast(wide);
  const double eps = c.number("eps");
  BatchNorm b;
  if (training) {
    b.mean = given.mean(all_but_channels(x));
    const Tensor away = given - per_channel(b.mean, x);
    b.variance = (away * away).mean(all_but_channels(x));
    b.rstd = (b.variance + eps).rsqrt();
  } else {
    if (!c.has("running_mean") || !c.has("running_var")) c.fail("no running statistics are given, and it is no training");
    b.mean = c.tensor("running_mean").cast(wide);
    b.rstd = (c.tensor("running_var").cast(wide) + eps).rsqrt();
  }
  Tensor out = (given - per_channel(b.mean, x)) * per_channel(b.rstd, x);
  if (weight.defined()) out = out * per_channel(weight.cast(wide), x);
  if (bias.defined()) out = out + per_channel(bias.cast(wide), x);
  b.out = out.cast(x.dtype());
  return b;
}
Results saved(const Call& c, const BatchNorm& b, bool training) {
  const DType dtype = statistics_type(c.tensor("input"), c.tensor("weight"));
  if (!training) {
    const Tensor none = Tensor::zeros({0}, {.dtype = dtype, .device = b.out.device()});
    return {b.out, none, none};
  }
  return {b.out, b.mean.cast(dtype), b.rstd.cast(dtype)};
}
/// The running statistics behind a step of training.
Tensor mixed(const Tensor& running, const Tensor& now, double momentum) {
  return (running.cast(now.dtype()) * (1 - momentum) + now * momentum).cast(running.dtype());
}
Tensor unbiased(const BatchNorm& b, const Tensor& x) {
  const double count = double(x.numel()) / double(x.size(1));
  return b.variance * (count / (count - 1));
}
Results native_batch_norm(const Call& c) {
  const bool training = c.declares("training") && c.flag("training");
  if (training && c.declares("running_mean") && c.has("running_mean") && c.number("momentum") != 0)
    c.fail("it writes into its running statistics; _native_batch_norm_legit_functional gives them");
  return saved(c, batch_norm_of(c, training), training);
}
Results batch_norm_functional(const Call& c) {
  const bool training = c.flag("training");
  const BatchNorm b = batch_norm_of(c, training);
  Results out = saved(c, b, training);
  const Tensor mean = c.tensor("running_mean"), variance = c.tensor("running_var");
  if (training) {
    out.push_back(mixed(mean, b.mean, c.number("momentum")));
    out.push_back(mixed(variance, unbiased(b, c.tensor("input")), c.number("momentum")));
  } else {
    out.push_back(mean);
    out.push_back(variance);
  }
  return out;
}
Results batch_norm_no_stats(const Call& c) { return saved(c, batch_norm_of(c, c.flag("training")), true); }
Results batch_norm(const Call& c) {
  const bool training = c.flag("training");
  if (training && c.has("running_mean") && c.number("momentum") != 0)
    c.fail("it writes into its running statistics; _native_batch_norm_legit_functional gives them");
  return one(batch_norm_of(c, training).out);
}
Results batch_norm_backward(const Call& c) {
  const Tensor x = c.tensor("input"), weight = c.tensor("weight");
  const DType wide = wide_type(x.dtype());
  const Tensor given = x.cast(wide), grad = c.tensor("grad_out").cast(wide);
  const bool train = c.flag("train");
  const Tensor mean = (train ? c.tensor("save_mean") : c.tensor("running_mean")).cast(wide);
  const Tensor rstd = train ? c.tensor("save_invstd").cast(wide) : (c.tensor("running_var").cast(wide) + c.number("eps")).rsqrt();
  const std::vector<int> axes = all_but_channels(x);
  const Tensor normal = (given - per_channel(mean, x)) * per_channel(rstd, x);
  const Tensor sum = grad.sum(axes), dot = (grad * normal).sum(axes);
  const double count = double(x.numel()) / double(x.size(1));
  Tensor scale = rstd;
  if (weight.defined()) scale = scale * weight.cast(wide);
  Tensor to_x = train ? grad - per_channel(sum / count, x) - normal * per_channel(dot / count, x) : grad;
  to_x = (to_x * per_channel(scale, x)).cast(x.dtype());
  const DType dtype = statistics_type(x, weight);
  const List& mask = c["output_mask"].list();
  if (mask.size() != 3) c.fail("output_mask does not have 3 bools");
  return {mask[0].boolean() ? Value(to_x) : Value(), mask[1].boolean() ? Value(dot.cast(dtype)) : Value(),
          mask[2].boolean() ? Value(sum.cast(dtype)) : Value()};
}

/// Mean and reciprocal deviation over the last axis of rows.
struct Rows {
  Tensor normal, mean, rstd;
};
Rows normalized(const Tensor& rows, double eps) {
  const Tensor mean = rows.mean(-1, {.keepdim = true}), away = rows - mean;
  const Tensor rstd = ((away * away).mean(-1, {.keepdim = true}) + eps).rsqrt();
  return {away * rstd, mean, rstd};
}
struct Layer {
  Sizes shape, outer, inner;
  int64_t rows = 1, width = 1;
};
Layer layer_of(const Call& c, const Tensor& x) {
  Layer out{.shape = x.shape(), .outer = {}, .inner = c.integers("normalized_shape")};
  if (out.inner.empty() || out.inner.size() > out.shape.size() || !std::equal(out.inner.rbegin(), out.inner.rend(), out.shape.rbegin()))
    c.fail("normalized_shape is not the end of the input's shape");
  out.outer.assign(out.shape.begin(), out.shape.end() - ptrdiff_t(out.inner.size()));
  for (int64_t s : out.outer) out.rows *= s;
  for (int64_t s : out.inner) out.width *= s;
  return out;
}
Results layer_norm(const Call& c) {
  const Tensor x = c.tensor("input"), weight = c.tensor("weight"), bias = c.tensor("bias");
  const Layer layer = layer_of(c, x);
  const DType wide = wide_type(x.dtype());
  const Rows rows = normalized(x.cast(wide).reshape({layer.rows, layer.width}), c.number("eps"));
  Tensor out = rows.normal.reshape(layer.shape);
  if (weight.defined()) out = out * weight.cast(wide);
  if (bias.defined()) out = out + bias.cast(wide);
  Sizes kept = layer.outer;
  kept.resize(layer.shape.size(), 1);
  const DType dtype = statistics_type(x, weight);
  return {out.cast(x.dtype()), rows.mean.reshape(kept).cast(dtype), rows.rstd.reshape(kept).cast(dtype)};
}
Results layer_norm_backward(const Call& c) {
  const Tensor x = c.tensor("input"), weight = c.tensor("weight");
  const Layer layer = layer_of(c, x);
  const DType wide = wide_type(x.dtype());
  const Sizes rows{layer.rows, layer.width}, column{layer.rows, 1};
  const Tensor grad = c.tensor("grad_out").cast(wide).reshape(rows), given = x.cast(wide).reshape(rows);
  const Tensor mean = c.tensor("mean").cast(wide).reshape(column), rstd = c.tensor("rstd").cast(wide).reshape(column);
  const Tensor normal = (given - mean) * rstd;
  const Tensor g = weight.defined() ? grad * weight.cast(wide).reshape({1, layer.width}) : grad;
  const Tensor to_x = rstd * (g - g.mean(-1, {.keepdim = true}) - normal * (g * normal).mean(-1, {.keepdim = true}));
  const DType dtype = statistics_type(x, weight);
  const List& mask = c["output_mask"].list();
  if (mask.size() != 3) c.fail("output_mask does not have 3 bools");
  return {mask[0].boolean() ? Value(to_x.reshape(layer.shape).cast(x.dtype())) : Value(),
          mask[1].boolean() && weight.defined() ? Value((grad * normal).sum(0).reshape(layer.inner).cast(dtype)) : Value(),
          mask[2].boolean() && c.has("bias") ? Value(grad.sum(0).reshape(layer.inner).cast(dtype)) : Value()};
}
Results rms_norm(const Call& c) {
  const Tensor x = c.tensor("input"), weight = c.tensor("weight");
  const Layer layer = layer_of(c, x);
  const DType wide = wide_type(x.dtype());
  const FloatInfo fields = finfo(wide);
  const double eps = c.has("eps") ? c.number("eps") : std::ldexp(1.0, -fields.mantissa_bits);
  const Tensor rows = x.cast(wide).reshape({layer.rows, layer.width});
  const Tensor rstd = ((rows * rows).mean(-1, {.keepdim = true}) + eps).rsqrt();
  Tensor out = (rows * rstd).reshape(layer.shape);
  if (weight.defined()) out = out * weight.cast(wide);
  if (!c.name().starts_with("aten._fused")) return one(out.cast(x.dtype()));
  Sizes kept = layer.outer;
  kept.resize(layer.shape.size(), 1);
  return {out.cast(x.dtype()), rstd.reshape(kept)};
}

struct Groups {
  int64_t batch, channels, width, groups;
};
Groups groups_of(const Call& c, const Tensor& x) {
  Groups g{.batch = x.size(0), .channels = x.size(1), .width = 1, .groups = c.integer(c.declares("group") ? "group" : "num_groups")};
  for (int i = 2; i < x.ndim(); ++i) g.width *= x.size(i);
  if (g.groups < 1 || g.channels % g.groups != 0) c.fail(fmt::format("{} channels in {} groups", g.channels, g.groups));
  return g;
}
Results group_norm(const Call& c) {
  const Tensor x = c.tensor("input"), weight = c.tensor("weight"), bias = c.tensor("bias");
  const Groups g = groups_of(c, x);
  const DType wide = wide_type(x.dtype());
  const Rows rows = normalized(x.cast(wide).reshape({g.batch * g.groups, g.channels / g.groups * g.width}), c.number("eps"));
  Tensor out = rows.normal.reshape(x.shape());
  if (weight.defined()) out = out * per_channel(weight.cast(wide), x);
  if (bias.defined()) out = out + per_channel(bias.cast(wide), x);
  if (c.declares("num_groups")) return one(out.cast(x.dtype()));
  const DType dtype = statistics_type(x, weight);
  return {out.cast(x.dtype()), rows.mean.reshape({g.batch, g.groups}).cast(dtype), rows.rstd.reshape({g.batch, g.groups}).cast(dtype)};
}
Results group_norm_backward(const Call& c) {
  const Tensor x = c.tensor("input"), weight = c.tensor("weight");
  const Groups g = groups_of(c, x);
  const DType wide = wide_type(x.dtype());
  const Sizes parts{g.batch, g.groups, g.channels / g.groups, g.width}, column{g.batch, g.groups, 1, 1};
  const Tensor grad = c.tensor("grad_out").cast(wide).reshape(parts), given = x.cast(wide).reshape(parts);
  const Tensor mean = c.tensor("mean").cast(wide).reshape(column), rstd = c.tensor("rstd").cast(wide).reshape(column);
  const Tensor normal = (given - mean) * rstd;
  const Tensor scaled = weight.defined() ? grad * weight.cast(wide).reshape({1, g.groups, g.channels / g.groups, 1}) : grad;
  const std::vector<int> inner{2, 3};
  const Tensor to_x = rstd * (scaled - scaled.mean(inner, {.keepdim = true}) - normal * (scaled * normal).mean(inner, {.keepdim = true}));
  const DType dtype = statistics_type(x, weight);
  const auto channels = [&](const Tensor& t) { return t.sum({0, 3}).reshape({g.channels}).cast(dtype); };
  const List& mask = c["output_mask"].list();
  if (mask.size() != 3) c.fail("output_mask does not have 3 bools");
  return {mask[0].boolean() ? Value(to_x.reshape(x.shape()).cast(x.dtype())) : Value(),
          mask[1].boolean() ? Value(channels(grad * normal)) : Value(), mask[2].boolean() ? Value(channels(grad)) : Value()};
}
/// Each channel of each sample by itself.
Results instance_norm(const Call& c) {
  const Tensor x = c.tensor("input"), weight = c.tensor("weight"), bias = c.tensor("bias");
  const DType wide = wide_type(x.dtype());
  if (!c.flag("use_input_stats")) {
    const Tensor mean = c.tensor("running_mean").cast(wide), rstd = (c.tensor("running_var").cast(wide) + c.number("eps")).rsqrt();
    Tensor out = (x.cast(wide) - per_channel(mean, x)) * per_channel(rstd, x);
    if (weight.defined()) out = out * per_channel(weight.cast(wide), x);
    if (bias.defined()) out = out + per_channel(bias.cast(wide), x);
    return one(out.cast(x.dtype()));
  }
  if (c.has("running_mean")) c.fail("it writes into its running statistics, which is not supported");
  Tensor out = normalized(x.cast(wide).reshape({x.size(0) * x.size(1), -1}), c.number("eps")).normal.reshape(x.shape());
  if (weight.defined()) out = out * per_channel(weight.cast(wide), x);
  if (bias.defined()) out = out + per_channel(bias.cast(wide), x);
  return one(out.cast(x.dtype()));
}

#define TG_BATCH_NORM "Tensor input, Tensor? weight, Tensor? bias, "

}  // namespace

std::vector<Row> normalization_operators() {
  return {
      {"aten.native_batch_norm.default(" TG_BATCH_NORM
       "Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps)",
       native_batch_norm},
      {"aten._native_batch_norm_legit.default(" TG_BATCH_NORM
       "Tensor running_mean, Tensor running_var, bool training, float momentum, float eps)",
       native_batch_norm},
      {"aten._native_batch_norm_legit.no_stats(" TG_BATCH_NORM "bool training, float momentum, float eps)", batch_norm_no_stats},
      {"aten._native_batch_norm_legit_no_training.default(" TG_BATCH_NORM
       "Tensor running_mean, Tensor running_var, float momentum, float eps)",
       native_batch_norm},
      {"aten._native_batch_norm_legit_functional.default(" TG_BATCH_NORM
       "Tensor running_mean, Tensor running_var, bool training, float momentum, float eps)",
       batch_norm_functional},
      {"aten.batch_norm.default(" TG_BATCH_NORM
       "Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled)",
       batch_norm},
      {"aten.native_batch_norm_backward.default(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, "
       "Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask)",
       batch_norm_backward},
      {"aten.native_layer_norm.default(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps)", layer_norm},
      {"aten.layer_norm.default(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
       "cudnn_enable=True)",
       [](const Call& c) { return Results{layer_norm(c)[0]}; }},
      {"aten.native_layer_norm_backward.default(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
       "Tensor? "
       "weight, Tensor? bias, bool[3] output_mask)",
       layer_norm_backward},
      {"aten.rms_norm.default(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None)", rms_norm},
      {"aten._fused_rms_norm.default(Tensor input, int[] normalized_shape, Tensor? weight, float? eps)", rms_norm},
      {"aten.native_group_norm.default(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps)",
       group_norm},
      {"aten.group_norm.default(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
       "cudnn_enabled=True)",
       group_norm},
      {"aten.native_group_norm_backward.default(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt "
       "C, "
       "SymInt HxW, int group, bool[3] output_mask)",
       group_norm_backward},
      {"aten.instance_norm.default(" TG_BATCH_NORM
       "Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled)",
       instance_norm},
  };
}

}  // namespace tinygrad::aten
