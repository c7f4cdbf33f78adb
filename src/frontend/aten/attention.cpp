// Scaled dot-product attention and its gradient.
#include <fmt/core.h>

#include <cmath>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

struct Inputs {
  Tensor query, key, value, mask;  ///< the mask is undefined, of bools (true: attend), or numbers to add
  double scale = 1;
  bool causal = false;
  DType dtype = DType::float32;
};
Inputs inputs_of(const Call& c) {
  Inputs in{.query = c.tensor("query"), .key = c.tensor("key"), .value = c.tensor("value"), .mask = c.tensor("attn_mask")};
  in.dtype = in.query.dtype();
  if (in.key.dtype() != in.dtype || in.value.dtype() != in.dtype) c.fail("query, key and value have different dtypes");
  if (in.query.ndim() < 2) c.fail("a query of fewer than two axes");
  in.scale = c.has("scale") ? c.number("scale") : 1 / std::sqrt(double(in.query.size(-1)));
  in.causal = c.flag("is_causal");
  if (in.causal && in.mask.defined()) c.fail("a mask beside is_causal");
  return in;
}
/// Each head of key and value for several of the query's.
void repeat_heads(const Call& c, Inputs& in) {
  if (in.query.ndim() < 3) return;
  const int64_t heads = in.query.size(-3);
  for (Tensor* t : {&in.key, &in.value}) {
    const int64_t own = t->size(-3);
    if (own == 0 || heads % own != 0) c.fail(fmt::format("{} heads of the query for {}", heads, own));
    if (own != heads) *t = t->repeat_interleave(heads / own, t->ndim() - 3);
  }
}
Tensor scores_of(const Inputs& in) {
  const DType wide = wide_type(in.dtype);
  Tensor scores = (in.query.cast(wide) * in.scale).matmul(in.key.cast(wide).transpose(-2, -1));
  const Tensor low = scores.full_like(-INFINITY);
  if (in.causal) {
    const Tensor rows = Tensor::arange(scores.size(-2), {.device = scores.device()}).unsqueeze(1);
    return (rows >= Tensor::arange(scores.size(-1), {.device = scores.device()})).where(scores, low);
  }
  if (!in.mask.defined()) return scores;
  return is_bool(in.mask.dtype()) ? in.mask.where(scores, low) : scores + in.mask.cast(wide);
}
/// Where a row has nothing to attend to, probabilities are 0.
Tensor weights_of(const Tensor& scores, const Tensor& lse) { return lse.eq(-INFINITY).where(scores.zeros_like(), (scores - lse).exp()); }
Tensor log_sum_exp(const Tensor& scores) {
  const Tensor most = scores.max(-1, {.keepdim = true}), finite = most.eq(-INFINITY).where(most.zeros_like(), most);
  return (scores - finite).exp().sum(-1, {.keepdim = true}).log() + finite;
}

Tensor fused(const Inputs& in) {
  // The library's own scale is that of the query's width.
  const double factor = in.scale * std::sqrt(double(in.query.size(-1)));
  const DType wide = wide_type(in.dtype);
  Tensor query = in.query.cast(wide);
  if (std::abs(factor - 1) > 1e-12) query = query * factor;
  const Tensor mask = in.mask.defined() && !is_bool(in.mask.dtype()) ? in.mask.cast(wide) : in.mask;
  const Tensor out = query.scaled_dot_product_attention(in.key.cast(wide), in.value.cast(wide), {.mask = mask, .is_causal = in.causal});
  return out.cast(in.dtype);
}
Results attention(const Call& c) {
  Inputs in = inputs_of(c);
  if (c.flag("enable_gqa")) repeat_heads(c, in);
  const double p = c.number("dropout_p");
  if (p == 0 && !in.mask.defined()) return one(fused(in));
  const Tensor scores = scores_of(in);
  Tensor weights = weights_of(scores, log_sum_exp(scores));
  if (p > 0) {
    if (p >= 1) return one((weights * 0).matmul(in.value.cast(weights.dtype())).cast(in.dtype));
    const Tensor kept = Tensor::rand(weights.shape(), {.dtype = weights.dtype(), .device = weights.device()}) >= p;
    weights = kept.where(weights * (1 / (1 - p)), weights.zeros_like());
  }
  return one(weights.matmul(in.value.cast(weights.dtype())).cast(in.dtype));
}
/// The result and, of each row, the logarithm of the sum of exponentials.
Results flash(const Call& c) {
  Inputs in = inputs_of(c);
  if (c.number("dropout_p") != 0) c.fail("dropout is not supported");
  repeat_heads(c, in);
  const Tensor scores = scores_of(in), lse = log_sum_exp(scores);
  const Tensor out = in.mask.defined() ? weights_of(scores, lse).matmul(in.value.cast(scores.dtype())).cast(in.dtype) : fused(in);
  return {out, lse.squeeze(-1)};
}
/// Of heads that were repeated, the sums over their copies.
Tensor gathered_heads(const Tensor& grad, const Tensor& of) {
  if (grad.ndim() < 3 || grad.size(-3) == of.size(-3)) return grad;
  return grad.unflatten(-3, {of.size(-3), grad.size(-3) / of.size(-3)}).sum(-3);
}
Results flash_backward(const Call& c) {
  Inputs in = inputs_of(c);
  if (c.number("dropout_p") != 0) c.fail("dropout is not supported");
  const Tensor key = in.key, value = in.value;
  repeat_heads(c, in);
  const DType wide = wide_type(in.dtype);
  const Tensor grad = c.tensor("grad_out").cast(wide), out = c.tensor("out").cast(wide);
  const Tensor weights = weights_of(scores_of(in), c.tensor("logsumexp").cast(wide).unsqueeze(-1));
  const Tensor to_value = weights.transpose(-2, -1).matmul(grad);
  const Tensor to_weights = grad.matmul(in.value.cast(wide).transpose(-2, -1));
  const Tensor to_scores = weights * (to_weights - (grad * out).sum(-1, {.keepdim = true})) * in.scale;
  const Tensor to_key = to_scores.transpose(-2, -1).matmul(in.query.cast(wide));
  return {to_scores.matmul(in.key.cast(wide)).cast(in.dtype), gathered_heads(to_key, key).cast(in.dtype),
          gathered_heads(to_value, value).cast(in.dtype)};
}

}  // namespace

std::vector<Row> attention_operators() {
  return {
      {"aten.scaled_dot_product_attention.default(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool "
       "is_causal=False, *, float? scale=None, bool enable_gqa=False)",
       attention},
      {"aten._scaled_dot_product_flash_attention_for_cpu.default(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool "
       "is_causal=False, *, Tensor? attn_mask=None, float? scale=None)",
       flash},
      {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor "
       "out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None)",
       flash_backward},
  };
}

}  // namespace tinygrad::aten
