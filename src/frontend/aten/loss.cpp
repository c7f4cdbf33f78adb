// Losses and their gradients.
#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include "frontend/aten/convolution.h"

namespace tinygrad::aten {

namespace {

constexpr int64_t no_reduction = 0, mean_reduction = 1, sum_reduction = 2;

Tensor reduced(const Call& c, const Tensor& losses) {
  const int64_t reduction = c.integer("reduction");
  if (reduction == no_reduction) return losses;
  if (reduction == mean_reduction) return losses.mean();
  if (reduction == sum_reduction) return losses.sum();
  c.fail(fmt::format("the reduction {}", reduction));
}
/// A loss of two tensors in their common dtype.
template <class F>
Results loss(const Call& c, F f) {
  const Promoted p = promoted(c, {"self", "target"});
  const DType wide = wide_type(p.dtype);
  return one(reduced(c, f(p[0].cast(wide), p[1].cast(wide))).cast(p.dtype));
}
/// Its gradient with respect to self.
template <class F>
Results loss_backward(const Call& c, F f) {
  const Tensor x = c.tensor("self"), target = c.tensor("target"), grad = c.tensor("grad_output");
  const DType wide = wide_type(x.dtype());
  const Tensor slope = f(x.cast(wide), target.cast(wide)) * grad.cast(wide);
  return one((c.integer("reduction") == mean_reduction ? slope / double(x.numel()) : slope).cast(x.dtype()));
}

Tensor squared_error(const Tensor& a, const Tensor& b) { return (a - b) * (a - b); }
Tensor squared_error_slope(const Tensor& a, const Tensor& b) { return 2 * (a - b); }
auto smooth_error(double beta) {
  return [beta](const Tensor& a, const Tensor& b) {
    const Tensor z = (a - b).abs();
    return beta == 0 ? z : (z < beta).where(z * z * (0.5 / beta), z - 0.5 * beta);
  };
}
auto smooth_error_slope(double beta) {
  return [beta](const Tensor& a, const Tensor& b) {
    const Tensor z = a - b;
    if (beta == 0) return (z > 0).cast(z.dtype()) - (z < 0).cast(z.dtype());
    return (z <= -beta).where(z.full_like(-1), (z >= beta).where(z.full_like(1), z / beta));
  };
}
auto huber(double delta) {
  return [delta](const Tensor& a, const Tensor& b) {
    const Tensor z = (a - b).abs();
    return (z < delta).where(z * z * 0.5, (z - 0.5 * delta) * delta);
  };
}
auto huber_slope(double delta) {
  return [delta](const Tensor& a, const Tensor& b) {
    const Tensor z = a - b;
    return (z <= -delta).where(z.full_like(-delta), (z >= delta).where(z.full_like(delta), z));
  };
}

Tensor weighted(const Call& c, const Tensor& losses) { return c.has("weight") ? losses * c.tensor("weight").cast(losses.dtype()) : losses; }
Results binary_cross_entropy(const Call& c) {
  return loss(c, [&](const Tensor& p, const Tensor& y) {
    const Tensor least = p.full_like(-100);
    return weighted(c, (y - 1) * (1 - p).log().maximum(least) - y * p.log().maximum(least));
  });
}
Results binary_cross_entropy_backward(const Call& c) {
  return loss_backward(c, [&](const Tensor& p, const Tensor& y) {
    const Tensor divisor = (1 - p) * p;
    return weighted(c, (p - y) / divisor.maximum(p.full_like(1e-12)));
  });
}
Results bce_with_logits(const Call& c) {
  return loss(c, [&](const Tensor& x, const Tensor& y) {
    const Tensor log_sigmoid = x.minimum(x.zeros_like()) - log1p((-x.abs()).exp());
    if (!c.has("pos_weight")) return weighted(c, (1 - y) * x - log_sigmoid);
    const Tensor factor = (c.tensor("pos_weight").cast(x.dtype()) - 1) * y + 1;
    return weighted(c, (1 - y) * x - factor * log_sigmoid);
  });
}
Results kl_div(const Call& c) {
  const bool is_log = c.flag("log_target");
  return loss(c, [&](const Tensor& x, const Tensor& y) {
    if (is_log) return y.exp() * (y - x);
    return y.eq(0).where(y.zeros_like(), y * y.log()) - y * x;
  });
}

/// Of log-probabilities (batch, classes, ...) and classes (batch, ...): the weight of each target, 0 where it is ignored.
struct Classes {
  Tensor logs, target, weights;
  int axis;
};
Classes classes_of(const Call& c) {
  const Tensor x = c.tensor("self"), target = c.tensor("target").cast(DType::int64);
  if (x.ndim() < 1 || target.ndim() != x.ndim() - 1) c.fail("target does not have an axis less than the log-probabilities");
  const int axis = x.ndim() == 1 ? 0 : 1;
  const DType wide = wide_type(x.dtype());
  const Tensor counts = target.ne(c.integer("ignore_index")), place = counts.where(target, target.zeros_like());
  Tensor weights = counts.cast(wide);
  if (c.has("weight")) weights = weights * c.tensor("weight").cast(wide)[{place}];
  return {x.cast(wide), place, weights, axis};
}
Results nll_forward(const Call& c) {
  const DType dtype = c.tensor("self").dtype();
  const auto [logs, target, weights, axis] = classes_of(c);
  const Tensor losses = -(logs.gather(axis, target.unsqueeze(axis)).squeeze(axis)) * weights;
  const Tensor masked = weights.eq(0).where(losses.zeros_like(), losses);
  const int64_t reduction = c.integer("reduction");
  const Tensor total = weights.sum();
  if (reduction == no_reduction) return {masked.cast(dtype), total.zeros_like().cast(dtype)};
  return {(reduction == mean_reduction ? masked.sum() / total : masked.sum()).cast(dtype), total.cast(dtype)};
}
Results nll(const Call& c) { return {nll_forward(c)[0]}; }
Results nll_backward(const Call& c) {
  const Tensor x = c.tensor("self");
  const auto [logs, target, weights, axis] = classes_of(c);
  Tensor grad = c.tensor("grad_output").cast(logs.dtype()) * weights;
  if (c.integer("reduction") == mean_reduction) grad = grad / c.tensor("total_weight").cast(logs.dtype());
  Sizes around(size_t(x.ndim()), 1);
  around[size_t(axis)] = x.size(axis);
  const Tensor classes = Tensor::arange(x.size(axis), {.dtype = DType::int64, .device = x.device()}).reshape(around);
  const Tensor spread = grad.unsqueeze(axis);
  return one(target.unsqueeze(axis).eq(classes).where(-spread, spread.zeros_like()).cast(x.dtype()));
}
Results cross_entropy(const Call& c) {
  const Tensor x = c.tensor("self"), target = c.tensor("target");
  const int axis = x.ndim() == 1 ? 0 : 1;
  const DType dtype = x.dtype(), wide = wide_type(dtype);
  const double smoothing = c.number("label_smoothing");
  const Tensor logs = x.cast(wide).log_softmax(axis);
  const double classes = double(x.size(axis));
  const int64_t reduction = c.integer("reduction");
  Sizes around(size_t(x.ndim()), 1);
  around[size_t(axis)] = x.size(axis);
  const Tensor class_weights = c.has("weight") ? c.tensor("weight").cast(wide).reshape(around) : Tensor();
  if (is_float(target.dtype())) {
    Tensor goal = target.cast(wide);
    if (smoothing > 0) goal = goal * (1 - smoothing) + smoothing / classes;
    Tensor terms = -(logs * goal);
    if (class_weights.defined()) terms = terms * class_weights;
    const Tensor losses = terms.sum(axis);
    if (reduction == mean_reduction) return one((losses.sum() / (double(x.numel()) / classes)).cast(dtype));
    return one(reduced(c, losses).cast(dtype));
  }
  const Tensor whole = target.cast(DType::int64), counts = whole.ne(c.integer("ignore_index"));
  const Tensor place = counts.where(whole, whole.zeros_like());
  Tensor weights = counts.cast(wide);
  if (c.has("weight")) weights = weights * c.tensor("weight").cast(wide)[{place}];
  const Tensor losses = -(logs.gather(axis, place.unsqueeze(axis)).squeeze(axis)) * weights;
  Tensor out = counts.where(losses, losses.zeros_like());
  Tensor result = reduction == no_reduction ? out : reduction == mean_reduction ? out.sum() / weights.sum() : out.sum();
  if (smoothing > 0) {
    const Tensor all = class_weights.defined() ? logs * class_weights : logs;
    const Tensor smooth = counts.where(-all.sum(axis), losses.zeros_like());
    const Tensor part = reduction == no_reduction     ? smooth
                        : reduction == mean_reduction ? smooth.sum() / (c.has("weight") ? weights.sum() : counts.cast(wide).sum())
                                                      : smooth.sum();
    result = result * (1 - smoothing) + part * (smoothing / classes);
  }
  return one(result.cast(dtype));
}
Results cosine_similarity(const Call& c) {
  const Promoted p = promoted_floats(c, {"x1", "x2"});
  const DType wide = wide_type(p.dtype);
  const Extents shape = broadcast_shapes(c, p.operands);
  const int axis = c.axis("dim", int(shape.size()));
  const Tensor a = p[0].cast(wide), b = p[1].cast(wide);
  const auto norm = [&](const Tensor& t) {
    const Tensor n = (t * t).sum(axis, {.keepdim = true}).sqrt();
    return n.maximum(n.full_like(c.number("eps")));
  };
  return one((a / norm(a) * (b / norm(b))).sum(axis).cast(p.dtype));
}
Results pairwise_distance(const Call& c) {
  // Integers are subtracted as such, unsigned ones around 0.
  const Promoted p = promoted(c, {"x1", "x2"});
  if (is_bool(p.dtype)) c.fail("not for bools");
  const DType dtype = float_type(p.dtype);
  const Tensor away = (p[0] - p[1]).cast(dtype) + c.number("eps");
  return one(call("aten.linalg_vector_norm.default",
                  {{"self", away.cast(wide_type(dtype))}, {"ord", c["p"]}, {"dim", List{int64_t{-1}}}, {"keepdim", c["keepdim"]}})[0]
                 .tensor()
                 .cast(dtype));
}

// Losses with a margin.

Tensor above_zero(const Tensor& x) { return x.maximum(x.zeros_like()); }
Results margin_ranking(const Call& c) {
  const Promoted p = promoted(c, {"input1", "input2", "target"});
  return one(reduced(c, above_zero(-p[2] * (p[0] - p[1]) + c.number("margin"))));
}
Results hinge_embedding(const Call& c) {
  return loss(c, [&](const Tensor& x, const Tensor& y) {
    return y.ne(1).where(above_zero(c.number("margin") - x), x.zeros_like()) + y.ne(-1).where(x, x.zeros_like());
  });
}
Results soft_margin(const Call& c) {
  return loss(c, [](const Tensor& x, const Tensor& y) { return log1p((-x * y).exp()); });
}
Results cosine_embedding(const Call& c) {
  const Promoted p = promoted_floats(c, {"input1", "input2"});
  const Tensor target = c.tensor("target");
  constexpr double least = 1e-12;
  const auto dot = [](const Tensor& a, const Tensor& b) { return (a * b).sum(-1); };
  const Tensor cosine = dot(p[0], p[1]) / ((dot(p[0], p[0]) + least) * (dot(p[1], p[1]) + least)).sqrt(), none = cosine.zeros_like();
  return one(reduced(c, target.eq(1).where(1 - cosine, none) + target.eq(-1).where(above_zero(cosine - c.number("margin")), none)));
}
Results triplet_margin(const Call& c) {
  const auto distance = [&](std::string_view a, std::string_view b) {
    return call("aten.pairwise_distance.default", {{"x1", c[a]}, {"x2", c[b]}, {"p", c["p"]}, {"eps", c["eps"]}})[0].tensor();
  };
  Tensor other = distance("anchor", "negative");
  if (c.flag("swap")) other = other.minimum(distance("positive", "negative"));
  return one(reduced(c, above_zero(distance("anchor", "positive") - other + c.number("margin"))));
}
Results poisson_nll(const Call& c) {
  const Promoted p = promoted(c, {"input", "target"});
  const Tensor &x = p[0], &y = p[1];
  Tensor losses = c.flag("log_input") ? x.exp() - y * x : x - y * (x + c.number("eps")).log();
  if (c.flag("full")) losses = losses + (y > 1).where(y * y.log() - y + 0.5 * (2 * std::numbers::pi * y).log(), y.zeros_like());
  return one(reduced(c, losses));
}

}  // namespace

std::vector<Row> loss_operators() {
  const auto beta = [](const Call& c) { return c.number("beta"); };
  const auto delta = [](const Call& c) { return c.number("delta"); };
  return {
      {"aten.mse_loss.default(Tensor self, Tensor target, int reduction=1)", [](const Call& c) { return loss(c, squared_error); }},
      {"aten.mse_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, int reduction)",
       [](const Call& c) { return loss_backward(c, squared_error_slope); }},
      {"aten.l1_loss.default(Tensor self, Tensor target, int reduction=1)",
       [](const Call& c) { return loss(c, [](const Tensor& a, const Tensor& b) { return (a - b).abs(); }); }},
      {"aten.smooth_l1_loss.default(Tensor self, Tensor target, int reduction=1, float beta=1.0)",
       [=](const Call& c) { return loss(c, smooth_error(beta(c))); }},
      {"aten.smooth_l1_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta)",
       [=](const Call& c) { return loss_backward(c, smooth_error_slope(beta(c))); }},
      {"aten.huber_loss.default(Tensor self, Tensor target, int reduction=1, float delta=1.0)",
       [=](const Call& c) { return loss(c, huber(delta(c))); }},
      {"aten.huber_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta)",
       [=](const Call& c) { return loss_backward(c, huber_slope(delta(c))); }},
      {"aten.binary_cross_entropy.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1)", binary_cross_entropy},
      {"aten.binary_cross_entropy_backward.default(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1)",
       binary_cross_entropy_backward},
      {"aten.binary_cross_entropy_with_logits.default(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int "
       "reduction=1)",
       bce_with_logits},
      {"aten.kl_div.default(Tensor self, Tensor target, int reduction=1, *, bool log_target=False)", kl_div},
      {"aten.nll_loss_forward.default(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index)", nll_forward},
      {"aten.nll_loss2d_forward.default(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index)", nll_forward},
      {"aten.nll_loss.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100)", nll},
      {"aten.nll_loss2d.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100)", nll},
      {"aten.nll_loss_nd.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100)", nll},
      {"aten.nll_loss_backward.default(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, "
       "Tensor total_weight)",
       nll_backward},
      {"aten.nll_loss2d_backward.default(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
       "ignore_index, "
       "Tensor total_weight)",
       nll_backward},
      {"aten.cross_entropy_loss.default(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float "
       "label_smoothing=0.0)",
       cross_entropy},
      {"aten.margin_ranking_loss.default(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1)", margin_ranking},
      {"aten.hinge_embedding_loss.default(Tensor self, Tensor target, float margin=1.0, int reduction=1)", hinge_embedding},
      {"aten.soft_margin_loss.default(Tensor self, Tensor target, int reduction=1)", soft_margin},
      {"aten.cosine_embedding_loss.default(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1)",
       cosine_embedding},
      {"aten.triplet_margin_loss.default(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, "
       "bool "
       "swap=False, int reduction=1)",
       triplet_margin},
      {"aten.poisson_nll_loss.default(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction)", poisson_nll},
      {"aten.cosine_similarity.default(Tensor x1, Tensor x2, int dim=1, float eps=1e-08)", cosine_similarity},
      {"aten.pairwise_distance.default(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False)", pairwise_distance},
  };
}

}  // namespace tinygrad::aten
