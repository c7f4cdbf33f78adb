// Attention, linear attention and rotary embeddings.
#include "frontend/onnx/operators/attention.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>

#include <tinygrad/errors.h>

namespace tinygrad::onnx {

namespace {

/// Each head for as many queries' heads as share it.
Tensor repeated_heads(const Tensor& x, int64_t heads) {
  const int64_t own = x.size(1);
  if (own == heads) return x;
  if (own == 0 || heads % own != 0) throw ShapeError(fmt::format("{} heads of queries for {} of keys", heads, own));
  return x.unsqueeze(2).expand({x.size(0), own, heads / own, x.size(2), x.size(3)}).reshape({x.size(0), heads, x.size(2), x.size(3)});
}

Tensor last_slice(const Tensor& x, int64_t begin, int64_t end, int64_t step = 1) {
  const std::vector<Index> indices{Index(Ellipsis{}), Index(Slice{.start = begin, .stop = end, .step = step})};
  return x.get_item(indices);
}

}  // namespace

AttentionCall::Result AttentionCall::compute() const {
  Result r;
  const DType dtype = q.dtype();
  const double root = std::sqrt(scale);
  const Tensor keys = repeated_heads(k, q.size(1)), values = repeated_heads(v, q.size(1));
  r.raw = ((q * root).matmul((keys * root).transpose(-2, -1))).cast(dtype);
  r.capped = softcap > 0 ? (r.raw / softcap).tanh() * softcap : r.raw;
  r.biased = bias.defined() ? r.capped + bias.cast(dtype) : r.capped;
  const double lowest = -std::numeric_limits<double>::infinity();
  if (allowed.defined()) r.biased = allowed.where(r.biased, lowest);
  const Tensor logits = softmax_dtype ? r.biased.cast(*softmax_dtype) : r.biased;
  r.probabilities = logits.softmax(-1);
  const Tensor is_open = both(allowed, bias.defined() && may_close ? bias > lowest : Tensor());
  if (is_open.defined()) r.probabilities = is_open.any(-1, {.keepdim = true, .dtype = {}}).where(r.probabilities, 0);
  r.probabilities = r.probabilities.cast(dtype);
  r.y = r.probabilities.matmul(values).cast(v.dtype());
  return r;
}

Tensor split_heads(const Tensor& x, int64_t heads) {
  if (heads < 1 || x.ndim() != 3 || x.size(2) % heads != 0) throw ShapeError(fmt::format("{} heads of {}", heads, x.to_string()));
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}
Tensor join_heads(const Tensor& x) { return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)}); }
Tensor both(const Tensor& a, const Tensor& b) { return a.defined() && b.defined() ? a & b : a.defined() ? a : b; }
Tensor key_positions(int64_t keys) { return Tensor::arange(keys, {.dtype = DType::int64}).reshape({1, keys}); }
Tensor query_positions(int64_t queries) { return Tensor::arange(queries, {.dtype = DType::int64}).reshape({queries, 1}); }

Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool is_interleaved, int64_t size) {
  const Tensor cos = cosines.unsqueeze(2), sin = sines.unsqueeze(2);
  const Tensor turned = last_slice(x, 0, size);
  const Tensor a = is_interleaved ? last_slice(turned, 0, size, 2) : last_slice(turned, 0, size / 2);
  const Tensor b = is_interleaved ? last_slice(turned, 1, size, 2) : last_slice(turned, size / 2, size);
  const Tensor real = cos * a - sin * b, imaginary = sin * a + cos * b;
  const Tensor out = is_interleaved ? Tensor::stack({real, imaginary}, -1).flatten(-2) : Tensor::cat({real, imaginary}, -1);
  return size == x.size(-1) ? out : Tensor::cat({out, last_slice(x, size, x.size(-1))}, -1);
}

namespace {

DType float_dtype(const Call& c, const char* attribute, ElementType otherwise) {
  const ElementType type = c.type_attribute(attribute, otherwise);
  if (!is_float(dtype_of(type)) || is_fp8(dtype_of(type))) c.fail(fmt::format("the attribute '{}' is {}", attribute, name(type)));
  return dtype_of(type);
}

Results attention(Call& c) {
  const bool is_flat = c.tensor(0).ndim() == 3;
  for (size_t i : {size_t{0}, size_t{1}, size_t{2}})
    if (c.tensor(i).ndim() != (is_flat ? 3 : 4)) c.fail(fmt::format("expects three or four axes, got {}", c.value(i).to_string()));
  if (c.has(4) != c.has(5)) c.fail("past keys without past values");
  const auto heads_of = [&](size_t input, const char* name) {
    return is_flat ? split_heads(c.tensor(input), c.required_integer(name)) : c.tensor(input);
  };
  AttentionCall a{.q = heads_of(0, "q_num_heads"), .k = heads_of(1, "kv_num_heads"), .v = heads_of(2, "kv_num_heads")};
  int64_t past = 0;
  if (c.has(4)) {
    past = c.tensor(4).size(2);
    a.k = Tensor::cat({c.tensor(4), a.k}, 2);
    a.v = Tensor::cat({c.tensor(5), a.v}, 2);
  }
  const int64_t queries = a.q.size(2), keys = a.k.size(2);
  a.scale = c.attribute("scale", 1 / std::sqrt(double(a.q.size(3))));
  a.softcap = c.attribute("softcap", 0.0);
  if (c.has_attribute("softmax_precision")) a.softmax_dtype = float_dtype(c, "softmax_precision", ElementType::float32);
  if (c.has(3)) {
    Tensor mask = c.tensor(3);
    const bool is_bool = mask.dtype() == DType::bool_;
    if (const int64_t length = mask.size(-1); length != keys) {
      std::vector<std::pair<int64_t, int64_t>> amounts(size_t(mask.ndim()), {0, 0});
      amounts.back() = {0, keys - length};
      mask = is_bool ? mask.pad(amounts, false) : mask.pad(amounts, -std::numeric_limits<double>::infinity());
    }
    (is_bool ? a.allowed : a.bias) = mask;
  }
  // How far each query stands behind the first key.
  const Tensor lengths = c.has(6) ? c.tensor(6).cast(DType::int64).reshape({-1, 1, 1, 1}) : Tensor();
  const Tensor at =
      query_positions(queries) + (lengths.defined() && !c.has(4) ? lengths - queries : Tensor::full({}, past, {.dtype = DType::int64}));
  if (c.flag("is_causal")) a.allowed = both(a.allowed, key_positions(keys) <= at);
  if (const int64_t left = c.attribute("left_window_size", -1); left >= 0) a.allowed = both(a.allowed, at - key_positions(keys) <= left);
  if (const int64_t right = c.attribute("right_window_size", -1); right >= 0)
    a.allowed = both(a.allowed, key_positions(keys) - at <= right);
  if (lengths.defined()) a.allowed = both(a.allowed, key_positions(keys) < lengths);
  const AttentionCall::Result r = a.compute();
  const int64_t mode = c.attribute_within("qk_matmul_output_mode", 0, 0, 3);
  const Tensor& shown = mode == 0 ? r.raw : mode == 1 ? r.capped : mode == 2 ? r.biased : r.probabilities;
  return {Value(is_flat ? join_heads(r.y) : r.y), Value(a.k), Value(a.v), Value(shown)};
}

Results flex_attention(Call& c) {
  const Tensor &q = c.tensor(0), k = repeated_heads(c.tensor(1), q.size(1)), v = repeated_heads(c.tensor(2), q.size(1));
  const DType wide = float_dtype(c, "softmax_precision", q.dtype() == DType::float64 ? ElementType::float64 : ElementType::float32);
  const double root = std::sqrt(c.attribute("scale", 1 / std::sqrt(double(q.size(3)))));
  Tensor scores = (q * root).matmul((k * root).transpose(-2, -1)).cast(wide);
  const auto modified = [&](const char* name, const Tensor& x) {
    if (!c.has_attribute(name)) return x;
    Value in(x);
    detail::ValueAccess::set_from_input(in, true);
    return c.run_graph(c.graph(name), std::span(&in, 1)).at(0).tensor();
  };
  const Tensor probabilities = modified("prob_mod", modified("score_mod", scores).softmax(-1));
  return results(probabilities.matmul(v.cast(wide)).cast(c.tensor(2).dtype()));
}

/// A state of products of keys and values, updated at each step.
Results linear_attention(Call& c) {
  const int64_t q_heads = c.required_integer("q_num_heads"), heads = c.required_integer("kv_num_heads");
  const std::string rule = c.attribute("update_rule", "gated_delta");
  const bool is_gated = rule == "gated" || rule == "gated_delta", is_delta = rule == "delta" || rule == "gated_delta";
  if (!is_gated && !is_delta && rule != "linear") c.fail(fmt::format("the update rule '{}'", rule));
  const Tensor q = split_heads(c.tensor(0), q_heads).cast(DType::float32), k = split_heads(c.tensor(1), heads).cast(DType::float32);
  const Tensor v = split_heads(c.tensor(2), heads).cast(DType::float32);
  const int64_t batch = q.size(0), steps = q.size(2), size = q.size(3);
  if (steps == 0) c.fail("no steps");
  c.take_steps(16 * steps);
  const double given = c.attribute("scale", 0.0), scale = given == 0 ? 1 / std::sqrt(double(size)) : given;
  const Tensor decay = is_gated ? split_heads(c.tensor(4), heads).cast(DType::float32).exp() : Tensor();
  const Tensor rate = is_delta ? c.tensor(5).cast(DType::float32).transpose(1, 2).unsqueeze(-1) : Tensor();
  Tensor state = c.has(3) ? c.tensor(3).cast(DType::float32) : Tensor::zeros({batch, heads, size, v.size(3)}, {.dtype = DType::float32});
  const auto step_of = [](const Tensor& x, int64_t t) { return x.shrink({{0, x.size(0)}, {0, x.size(1)}, {t, t + 1}, {0, x.size(3)}}); };
  std::vector<Tensor> out;
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor key = step_of(k, t).transpose(2, 3);  // (batch, heads, size, 1)
    Tensor value = step_of(v, t);
    if (is_gated) state = state * step_of(decay, t).transpose(2, 3);
    if (is_delta) value = step_of(rate, t) * (value - (key * state).sum(2, {.keepdim = true, .dtype = {}}));
    state = state + key * value;
    out.push_back(step_of(q, t).matmul(repeated_heads(state, q_heads)) * scale);
  }
  const Tensor y = join_heads(Tensor::cat(out, 2));
  return {Value(y.cast(c.tensor(0).dtype())), Value(state.cast(c.has(3) ? c.tensor(3).dtype() : c.tensor(0).dtype()))};
}

Results rotary_embedding(Call& c) {
  const Tensor& x = c.tensor(0);
  const bool is_flat = x.ndim() == 3;
  const Tensor by_head = is_flat ? x.reshape({x.size(0), x.size(1), c.required_integer("num_heads"), -1}) : x.transpose(1, 2);
  if (by_head.ndim() != 4) c.fail(fmt::format("expects three or four axes, got {}", x.to_string()));
  const int64_t named = c.attribute_within("rotary_embedding_dim", 0, 0, by_head.size(3)), size = named ? named : by_head.size(3);
  if (size % 2 != 0) c.fail(fmt::format("{} numbers that turn in pairs", size));
  const auto cache = [&](size_t input) { return c.has(3) ? c.tensor(input)[c.tensor(3)] : c.tensor(input); };
  const Tensor y = rotate(by_head, cache(1), cache(2), c.flag("interleaved"), size);
  return results(is_flat ? y.reshape(x.shape()) : y.transpose(1, 2));
}

constexpr OperatorRow rows[] = {
    {onnx_domain, "Attention", 23, attention},
    {onnx_domain, "LinearAttention", 27, linear_attention},
    {onnx_domain, "RotaryEmbedding", 23, rotary_embedding},
    {preview_domain, "FlexAttention", 1, flex_attention},
};

}  // namespace

std::span<const OperatorRow> attention_operators() { return rows; }

}  // namespace tinygrad::onnx
