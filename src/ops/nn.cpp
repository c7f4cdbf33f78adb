// Normalizations, attention and losses.
#include "ops/nn.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/activation.h"
#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/index.h"
#include "ops/known.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "uop/build.h"

namespace tinygrad::ops {

UOp layernorm(const UOp& x, const Axes& axes, double eps) {
  return in_float32(x, {}, [&](const Expr& v) {
    const Expr centered = v - mean(v, axes, true);
    return centered * rsqrt(Expr(mean(square(centered), axes, true)) + eps);
  });
}

UOp batchnorm(const UOp& x, const UOp& weight, const UOp& bias, const UOp& mean, const UOp& invstd, const Axes& axes) {
  const Shape& in = shape_of(x);
  Shape shape(in.size(), SInt(1));
  for (int a : resolve_axes("batchnorm", axes, in.size())) shape[size_t(a)] = in[size_t(a)];
  auto along = [&](const UOp& u) {
    if (surely_differ(numel(shape_of(u)), numel(shape)))
      throw ShapeError(
          fmt::format("batchnorm: {} does not fit the channels {} of {}", to_string(shape_of(u)), to_string(numel(shape)), to_string(in)));
    return ops::reshape(u, shape);
  };
  DType result = least_upper_dtype({x.dtype(), mean.dtype(), invstd.dtype()});
  for (const UOp& u : {weight, bias})
    if (u) result = least_upper_dtype(result, u.dtype());
  Expr y = Expr(is_float(result) ? to_float32(x) : x) - along(mean);
  if (weight) y = y * along(weight);
  y = y * (rank_of(invstd) == axes.size() ? along(invstd) : invstd);
  return tinygrad::cast(bias ? y + along(bias) : y, result);
}

namespace {

[[noreturn]] void bad_attention(const UOp& query, const UOp& key, const UOp& value, std::string_view why) {
  throw ShapeError(fmt::format("scaled_dot_product_attention: query {}, key {} and value {}: {}", to_string(shape_of(query)),
                               to_string(shape_of(key)), to_string(shape_of(value)), why));
}

/// Features of query and key agree, key and value have one length, and heads are as many or, with grouped queries, a multiple.
void check_attention(const UOp& query, const UOp& key, const UOp& value, bool grouped) {
  const Shape &q = shape_of(query), &k = shape_of(key), &v = shape_of(value);
  if (q.size() < 2 || k.size() < 2 || v.size() < 2) bad_attention(query, key, value, "expects (..., length, features)");
  if (surely_differ(q.back(), k.back())) bad_attention(query, key, value, "the features of query and key differ");
  if (surely_differ(k[k.size() - 2], v[v.size() - 2])) bad_attention(query, key, value, "the lengths of key and value differ");
  for (const Shape* s : {&k, &v}) {
    if (q.size() < 3 || s->size() < 3) {
      if (grouped) bad_attention(query, key, value, "enable_gqa expects (..., heads, length, features)");
      continue;
    }
    const SInt &heads = q[q.size() - 3], &own = (*s)[s->size() - 3];
    if (grouped ? own == 0 || !(floor_mod(heads, own) == 0) : !(heads == own || heads == 1 || own == 1))
      bad_attention(query, key, value,
                    grouped ? "the heads of the query are no multiple of the others'" : "the heads differ; a multiple needs enable_gqa");
  }
}

}  // namespace

UOp scaled_dot_product_attention(const UOp& query, const UOp& key, const UOp& value, const AttentionOptions& o) {
  check_attention(query, key, value, o.enable_gqa);
  if (o.is_causal && o.mask)
    throw ValueError("scaled_dot_product_attention: is_causal and a mask exclude each other; put both into the mask");
  auto with_heads_of_query = [&](const UOp& u) {
    if (!o.enable_gqa) return u;
    const int64_t heads = shape_of(query)[rank_of(query) - 3].value(), own = shape_of(u)[rank_of(u) - 3].value();
    return repeat_interleave(u, heads / own, -3);
  };
  const UOp k = with_heads_of_query(key), v = with_heads_of_query(value);
  const DType acc = least_upper_dtype({query.dtype(), k.dtype(), DType::float32});
  UOp scores = div(matmul(query, ops::transpose(k, -1, -2), acc), std::sqrt(double(shape_of(query).back().value())));
  const double none = -std::numeric_limits<double>::infinity();
  if (o.is_causal) {
    const Shape& s = shape_of(scores);
    const UOp seen = ge(iota_along(0, 2, s[s.size() - 2]), iota_along(1, 2, s.back()));
    scores = ops::where(seen, scores, none);
  } else if (o.mask) {
    if (const Shape& s = shape_of(scores); broadcast_shape(shape_of(o.mask), s, "scaled_dot_product_attention: mask") != s)
      throw ShapeError(
          fmt::format("scaled_dot_product_attention: the mask {} has more than the scores {}", to_string(shape_of(o.mask)), to_string(s)));
    scores = is_bool(o.mask.dtype()) ? ops::where(o.mask, scores, none) : add(scores, o.mask);
  }
  // A mask may leave nothing of a row. Weights are rounded for their product with the values, as tensor cores take them.
  const UOp weights = tinygrad::cast(o.mask ? masked_softmax(scores) : softmax(scores, -1), query.dtype());
  return matmul(o.dropout ? o.dropout(weights) : weights, v);
}

namespace {

UOp reduced(const UOp& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean: return mean(losses);
    case Reduction::sum: return sum(losses);
    case Reduction::none: break;
  }
  return losses;
}

void check_smoothing(std::string_view op, double label_smoothing) {
  if (!(label_smoothing >= 0 && label_smoothing <= 1))
    throw ValueError(fmt::format("{}: label_smoothing {} is not within [0, 1]", op, label_smoothing));
}

void check_shape(std::string_view op, const UOp& y, const Shape& want) {
  if (shape_of(y) != want)
    throw ShapeError(fmt::format("{}: the targets have the shape {}, expects {}", op, to_string(shape_of(y)), to_string(want)));
}

void check_targets(std::string_view op, const UOp& y, const Shape& want) {
  check_shape(op, y, want);
  if (!is_int(y.dtype())) throw DTypeError(fmt::format("{}: the targets are {}, expects integer class indices", op, repr(y.dtype())));
}

Shape without(const Shape& shape, size_t axis) {
  Shape out = shape;
  out.erase(out.begin() + axis);
  return out;
}

/// Whether each class, along `axis`, is the target.
UOp is_class(const UOp& y, int axis, const SInt& classes) {
  const UOp hot = one_hot(y, classes, DType::bool_);
  Axes order;
  for (int i = 0; i + 1 < int(rank_of(hot)); ++i) order.push_back(i);
  order.insert(order.begin() + axis, int(rank_of(hot)) - 1);
  return ops::permute(hot, order);
}

}  // namespace

namespace {

/// Whether each target counts; null where all do, since none can be the one to ignore.
UOp counts(const UOp& y, std::optional<int64_t> ignore_index) {
  const int64_t ignored = ignore_index.value_or(ignored_target);
  return is_unsigned(y.dtype()) && ignored < 0 ? UOp() : ops::ne(y, ignored);
}

/// The losses of targets that count: NaN for those that are no class, rather than the loss of a right answer, and 0 for the others.
UOp of_targets(const UOp& losses, const UOp& y, const SInt& classes, const UOp& counted) {
  UOp outside = ops::ge(y, classes);
  if (!is_unsigned(y.dtype())) outside = ops::bitwise_or(outside, ops::lt(y, 0));
  const UOp seen = ops::where(outside, std::numeric_limits<double>::quiet_NaN(), losses);
  return counted ? ops::where(counted, seen, 0) : seen;
}

UOp reduced(const UOp& losses, Reduction reduction, const UOp& counted) {
  return reduction == Reduction::mean && counted ? div(sum(losses), sum(counted)) : reduced(losses, reduction);
}

/// log(p), but not below -100, so that a probability of 0 that has no weight costs nothing. Below `least` its slope does not grow further.
UOp log_of_probability(const UOp& p, double least) {
  return known("log of probability", maximum(log(p), -100), p, UOps{constant(p.dtype(), least)});
}

}  // namespace

UOp binary_crossentropy(const UOp& x, const UOp& y, Reduction reduction, const OpsContext& ctx) {
  check_shape("binary_crossentropy", y, shape_of(x));
  const Expr p = to_float32(x, ctx), t = to_float32(y, ctx);
  // Slopes that the dtype of p holds. A p that was rounded to 1 is any number that near to it, and what it was computed from may have a
  // slope still.
  const auto [exponent, mantissa] = finfo(is_float(x.dtype()) ? x.dtype() : p.dtype());
  const double least = std::max(1e-12, std::ldexp(1.0, 1 - (1 << (exponent - 1))));
  const double least_complement = std::max(least, std::ldexp(1.0, -mantissa - 1));
  return tinygrad::cast(reduced(-t * log_of_probability(p, least) - (1 - t) * log_of_probability(1 - p, least_complement), reduction),
                        common_dtype(to_float(x, ctx), to_float(y, ctx)));
}

UOp binary_crossentropy_logits(const UOp& x, const UOp& y, Reduction reduction, const UOp& pos_weight, const OpsContext& ctx) {
  check_shape("binary_crossentropy_logits", y, shape_of(x));
  if (pos_weight && broadcast_shape(shape_of(pos_weight), shape_of(x), "binary_crossentropy_logits: pos_weight") != shape_of(x))
    throw ShapeError(
        fmt::format("binary_crossentropy_logits: pos_weight {} has more than {}", to_string(shape_of(pos_weight)), to_string(shape_of(x))));
  const Expr v = to_float32(x, ctx), t = to_float32(y, ctx);
  const Expr positive = t * logsigmoid(v), negative = (1 - t) * logsigmoid(-v);
  DType result = common_dtype(to_float(x, ctx), to_float(y, ctx));
  if (pos_weight) result = least_upper_dtype(result, pos_weight.dtype());
  return tinygrad::cast(reduced(-((pos_weight ? positive * pos_weight : positive) + negative), reduction), result);
}

UOp sparse_categorical_crossentropy(const UOp& x, const UOp& y, std::optional<int64_t> ignore_index, double label_smoothing,
                                    Reduction reduction, const OpsContext& ctx) {
  const Shape& in = shape_of(x);
  if (in.empty()) throw ShapeError("sparse_categorical_crossentropy: got (), expects (..., classes)");
  check_smoothing("sparse_categorical_crossentropy", label_smoothing);
  check_targets("sparse_categorical_crossentropy", y, without(in, in.size() - 1));
  return in_float32(x, ctx, [&](const Expr& v) -> UOp {
    const UOp log_probs = log_softmax(v, -1);
    Expr likelihood = sum(ops::where(one_hot(y, in.back(), DType::bool_), log_probs, 0), -1);
    if (label_smoothing != 0) likelihood = likelihood * (1 - label_smoothing) + Expr(mean(log_probs, -1)) * label_smoothing;
    const UOp counted = counts(y, ignore_index);
    return neg(reduced(of_targets(likelihood, y, in.back(), counted), reduction, counted));
  });
}

UOp cross_entropy(const UOp& x, const UOp& y, std::optional<int64_t> ignore_index, Reduction reduction, double label_smoothing,
                  const OpsContext& ctx) {
  const Shape& in = shape_of(x);
  if (in.empty()) throw ShapeError("cross_entropy: got (), expects (classes) or (batch, classes, ...)");
  check_smoothing("cross_entropy", label_smoothing);
  const int axis = in.size() == 1 ? 0 : 1;
  const SInt& classes = in[size_t(axis)];
  const DType result = to_float(x, ctx).dtype();
  const UOp log_probs = log_softmax(to_float32(x, ctx), axis);
  Expr likelihood = log_probs;
  UOp counted;
  if (shape_of(y) == in) {
    const Expr target = tinygrad::cast(y, log_probs.dtype());
    const Expr smooth = label_smoothing == 0 ? target : target * (1 - label_smoothing) + label_smoothing / double(classes.value());
    likelihood = sum(smooth * log_probs, axis);
  } else {
    check_targets("cross_entropy", y, without(in, size_t(axis)));
    likelihood = sum(ops::where(is_class(y, axis, classes), log_probs, 0), axis);
    if (label_smoothing != 0) likelihood = likelihood * (1 - label_smoothing) + Expr(mean(log_probs, axis)) * label_smoothing;
    counted = counts(y, ignore_index);
    likelihood = of_targets(likelihood, y, classes, counted);
  }
  return tinygrad::cast(neg(reduced(likelihood, reduction, counted)), result);
}

UOp nll_loss(const UOp& x, const UOp& y, const UOp& weight, std::optional<int64_t> ignore_index, Reduction reduction,
             const OpsContext& ctx) {
  const Shape& in = shape_of(x);
  if (in.size() < 2) throw ShapeError(fmt::format("nll_loss: got {}, expects (batch, classes, ...)", to_string(in)));
  check_targets("nll_loss", y, without(in, 1));
  const UOp v = to_float32(x, ctx), hot = is_class(y, 1, in[1]);
  Expr weights = full(shape_of(y), 1, v.dtype());
  if (weight) {
    if (shape_of(weight) != Shape{in[1]})
      throw ShapeError(fmt::format("nll_loss: weights of the shape {}, expects one for each of {} classes", to_string(shape_of(weight)),
                                   to_string(in[1])));
    Shape along(in.size(), SInt(1));
    along[1] = in[1];
    weights = sum(ops::where(hot, ops::reshape(tinygrad::cast(weight, v.dtype()), along), 0), 1);
  }
  const UOp counted = counts(y, ignore_index);
  if (counted) weights = ops::where(counted, weights, 0);
  const Expr losses = of_targets(Expr(neg(sum(ops::where(hot, v, 0), 1))) * weights, y, in[1], counted);
  const UOp loss = reduction == Reduction::mean ? div(sum(losses), sum(weights)) : reduced(losses, reduction);
  return tinygrad::cast(loss, to_float(x, ctx).dtype());
}

}  // namespace tinygrad::ops
