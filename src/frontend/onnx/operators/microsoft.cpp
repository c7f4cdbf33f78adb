// Operators of com.microsoft, which onnxruntime's own tools write: fused ones, attention of language models, weights in few bits.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>

#include <tinygrad/errors.h>

#include "frontend/onnx/operators/attention.h"
#include "frontend/onnx/operators/quantized.h"
#include "frontend/onnx/operators/window.h"

namespace tinygrad::onnx {

namespace {

// Fused elementwise operators and normalizations

Results bias_gelu(Call& c) { return results((c.tensor(0) + c.tensor(1)).gelu(GeluForm::erf)); }
Results fast_gelu(Call& c) { return results((c.has(1) ? c.tensor(0) + c.tensor(1) : c.tensor(0)).gelu(GeluForm::tanh)); }
Results gelu(Call& c) { return results(c.tensor(0).gelu(GeluForm::erf)); }
Results quick_gelu(Call& c) {
  const Tensor& x = c.tensor(0);
  return results(x * (x * c.attribute("alpha", 1.702)).sigmoid());
}
Results bias_add(Call& c) { return results(c.tensor(0) + c.tensor(1) + c.tensor(2)); }
Results bias_split_gelu(Call& c) {
  const std::vector<Tensor> halves = (c.tensor(0) + c.tensor(1)).chunk(2, -1);
  return results(halves.at(0) * halves.at(1).gelu(GeluForm::erf));
}

struct Normalized {
  Tensor y, mean, inverse;
};
/// Over the last axis; without `is_centered` only divided by the root of the mean of squares.
Normalized normalized(const Tensor& x, const Tensor& scale, const Tensor& bias, double epsilon, bool is_centered) {
  const ReduceOptions kept{.keepdim = true, .dtype = {}};
  const Tensor wide = x.dtype() == DType::float64 ? x : x.cast(DType::float32);
  const Tensor mean = wide.mean(-1, kept), centered = is_centered ? wide - mean : wide;
  const Tensor inverse = ((centered * centered).mean(-1, kept) + epsilon).rsqrt();
  Tensor y = (centered * inverse).cast(x.dtype()) * scale;
  if (bias.defined()) y = y + bias;
  return {y, mean, inverse};
}

Results simplified_layer_normalization(Call& c) {
  const Normalized n = normalized(c.tensor(0), c.tensor(1), {}, c.attribute("epsilon", 1e-5), false);
  return {Value(n.y), Value(n.inverse)};
}
Results skip_layer_normalization(Call& c) {
  Tensor sum = c.tensor(0) + c.tensor(1);
  if (c.has(4)) sum = sum + c.tensor(4);
  const Normalized n = normalized(sum, c.tensor(2), c.tensor_or_none(3), c.attribute("epsilon", 1e-12), true);
  return {Value(n.y), Value(n.mean), Value(n.inverse), Value(sum)};
}
Results skip_simplified_layer_normalization(Call& c) {
  Tensor sum = c.tensor(0) + c.tensor(1);
  if (c.has(3)) sum = sum + c.tensor(3);
  const Normalized n = normalized(sum, c.tensor(2), {}, c.attribute("epsilon", 1e-12), false);
  return {Value(n.y), Value(n.mean), Value(n.inverse), Value(sum)};
}

/// Tables of words, places and segments, scale and bias of a normalization, and the inputs with a mask and places.
struct Embedding {
  Tensor words, places, segments, scale, bias;
  Tensor mask, positions;
};

/// The normalized sum, how long each sequence is by its mask, and the sum.
Results embedded(Call& c, const Embedding& e) {
  const Tensor& ids = c.tensor(0);
  const int64_t length = ids.size(1);
  Tensor sum = e.words[ids.cast(DType::int64)];
  sum = sum + (e.positions.defined() ? e.places[e.positions.cast(DType::int64)] : e.places.shrink({{0, length}, {0, e.places.size(1)}}));
  if (e.segments.defined() && c.has(1)) sum = sum + e.segments[c.tensor(1).cast(DType::int64)];
  const Tensor y = normalized(sum, e.scale, e.bias, c.attribute("epsilon", 1e-12), true).y;
  const Tensor lengths = e.mask.defined() ? e.mask.sum(1).cast(DType::int32) : Tensor::zeros({ids.size(0)}, {.dtype = DType::int32});
  return {Value(y), Value(lengths), Value(sum)};
}

Results embed_layer_normalization(Call& c) {
  return embedded(c, {c.tensor(2), c.tensor(3), c.tensor_or_none(4), c.tensor(5), c.tensor(6), c.tensor_or_none(7), c.tensor_or_none(8)});
}

/// Codes of five tables, a mask, and for each table a scale, then for each a zero point.
Results q_embed_layer_normalization(Call& c) {
  const auto table = [&](size_t i) {
    if (!c.has(i)) return Tensor();
    const size_t scale = 6 + i, zero = 11 + i;
    Tensor wide = c.tensor(i).cast(DType::int32);
    if (c.has(zero)) wide = wide - c.tensor(zero).reshape({}).cast(DType::int32);
    return wide.cast(DType::float32) * c.tensor(scale).reshape({});
  };
  const Results out = embedded(c, {table(2), table(3), table(4), table(5), table(6), c.tensor_or_none(7), {}});
  return {out[0], out[1]};
}

Tensor activated(const Call& c, const Tensor& x, const std::string& prefix) {
  const std::string name = c.attribute(prefix, "");
  const std::vector<double> p = c.attribute("activation_params", std::vector<double>());
  const auto param = [&](size_t i, double otherwise) { return i < p.size() ? p[i] : otherwise; };
  if (name.empty()) return x;
  if (name == "Relu") return x.relu();
  if (name == "Tanh") return x.tanh();
  if (name == "Sigmoid") return x.sigmoid();
  if (name == "LeakyRelu") return x.leaky_relu(param(0, 0.01));
  if (name == "HardSigmoid") return x.hardsigmoid(param(0, 0.2), param(1, 0.5));
  if (name == "Clip") return x.clamp(param(0, -std::numeric_limits<double>::infinity()), param(1, std::numeric_limits<double>::infinity()));
  c.fail(fmt::format("the activation '{}'", name));
}
Results fused_conv(Call& c) {
  Tensor y = convolve(c, c.tensor(0), c.tensor(1), c.tensor_or_none(2));
  if (c.has(3)) y = y + c.tensor(3);
  return results(activated(c, y, "activation"));
}
Results fused_gemm(Call& c) {
  const Tensor a = c.flag("transA") ? c.tensor(0).T() : c.tensor(0), b = c.flag("transB") ? c.tensor(1).T() : c.tensor(1);
  Tensor y = a.matmul(b) * c.attribute("alpha", 1.0);
  if (c.has(2)) y = y + c.tensor(2) * c.attribute("beta", 1.0);
  return results(activated(c, y, "activation"));
}
Results fused_matmul(Call& c) {
  const auto turned = [&](size_t input, const char* last, const char* batch) {
    Tensor x = c.tensor(input);
    if (c.flag(batch) && x.ndim() > 2) {  // the first axis stands before the last
      std::vector<int> order;
      for (int i = 1; i + 1 < x.ndim(); ++i) order.push_back(i);
      order.insert(order.end(), {0, x.ndim() - 1});
      x = x.permute(order);
    }
    return c.flag(last) && x.ndim() > 1 ? x.transpose(-2, -1) : x;
  };
  const Tensor y = turned(0, "transA", "transBatchA").matmul(turned(1, "transB", "transBatchB"));
  const double alpha = c.attribute("alpha", 1.0);
  return results(alpha == 1 ? y : y * alpha);
}

// Weights in few bits

/// Elements of `bits` bits along the last axis, the lowest bits first.
Tensor unpacked(const Tensor& packed, int64_t bits) {
  if (bits == 8) return packed;
  std::vector<Tensor> parts;
  for (int64_t at = 0; at < 8; at += bits) parts.push_back((packed >> at) & ((1 << bits) - 1));
  return Tensor::stack(parts, -1).flatten(-2);
}

/// Weights of (N, K), of whose rows each block has a scale and a zero point.
Results matmul_n_bits(Call& c) {
  const Tensor& x = c.tensor(0);
  constexpr int64_t most = int64_t{1} << 31;
  c.required_integer("K"), c.required_integer("N"), c.required_integer("block_size");
  const int64_t k = c.attribute_within("K", 0, 1, most), n = c.attribute_within("N", 0, 1, most), bits = c.attribute("bits", 4),
                block = c.attribute_within("block_size", 0, 1, most);
  if (bits != 2 && bits != 4 && bits != 8) c.fail(fmt::format("{} bits", bits));
  if (c.has(4)) c.fail("g_idx is not supported");
  const int64_t blocks = (k + block - 1) / block;
  const Tensor codes = unpacked(c.tensor(1).reshape({n, blocks, block * bits / 8}), bits);
  const Tensor scale = c.tensor(2).reshape({n, blocks, 1});
  Tensor weights = codes.cast(scale.dtype());
  if (!c.has(3)) {
    weights = weights - double(1 << (bits - 1));
  } else if (c.tensor(3).dtype() != DType::uint8) {
    weights = weights - c.tensor(3).reshape({n, blocks, 1}).cast(scale.dtype());
  } else {
    const Tensor zero = unpacked(c.tensor(3).reshape({n, -1}), bits).shrink_to({n, blocks});
    weights = weights - zero.reshape({n, blocks, 1}).cast(scale.dtype());
  }
  Tensor w = (weights * scale).reshape({n, blocks * block});
  if (blocks * block != k) w = w.shrink_to({n, k});
  Tensor y = x.matmul(factor_for(x, w.cast(x.dtype()).T()));
  if (c.has(5)) y = y + c.tensor(5);
  return results(y);
}

Results gather_block_quantized(Call& c) {
  const Value& data = c.value(0);
  const int64_t bits = data.element_type() == ElementType::uint8 ? c.attribute("bits", 4) : 8,
                block = c.attribute_within("block_size", 128, 1, int64_t{1} << 24);
  if (bits != 2 && bits != 4 && bits != 8) c.fail(fmt::format("{} bits", bits));
  const bool is_packed = data.element_type() == ElementType::uint8 && bits < 8;
  const Tensor& codes = data.tensor();
  const int rank = codes.ndim();
  const int axis = normal_axis(c, c.attribute("quantize_axis", 1), size_t(rank)),
            gather_axis = normal_axis(c, c.attribute("gather_axis", 0), size_t(rank));
  const auto at = [&](const Tensor& t) {
    std::vector<Index> indices(size_t(gather_axis), Index(Slice{}));
    const Tensor wide = c.tensor(1).cast(DType::int64);
    indices.emplace_back((wide < 0).where(wide + t.size(gather_axis), wide));
    return t.get_item(indices);
  };
  const int moved = axis > gather_axis ? axis + c.tensor(1).ndim() - 1 : axis;
  Tensor x = at(codes);
  if (is_packed) x = unpacked(x, bits);
  const Tensor scale = at(c.tensor(2));
  const auto each = [&](const Tensor& t) {
    Sizes sizes(size_t(t.ndim()), -1);
    sizes[size_t(moved)] = x.size(moved);
    return t.repeat_interleave(block, moved).shrink_to(sizes);
  };
  Tensor wide = x.cast(scale.dtype());
  if (c.has(3)) {
    const Tensor zero = is_packed ? unpacked(at(c.tensor(3)), bits).shrink_to(scale.shape()) : at(c.tensor(3));
    wide = wide - each(zero.cast(scale.dtype()));
  } else if (is_packed) {
    wide = wide - double(1 << (bits - 1));
  }
  return results(wide * each(scale));
}

// Products of quantized numbers

Tensor scalar(const Call& c, size_t input) { return c.tensor(input).numel() == 1 ? c.tensor(input).reshape({}) : c.tensor(input); }
/// An input, its scale and its zero point as a float.
Tensor dequantized(const Call& c, size_t x, size_t scale, size_t zero) {
  Tensor wide = c.tensor(x).cast(DType::int32);
  if (c.has(zero)) wide = wide - scalar(c, zero).cast(DType::int32);
  return wide.cast(DType::float32) * scalar(c, scale);
}
Value requantized(const Call& c, const Tensor& x, size_t scale, size_t zero, ElementType otherwise) {
  return quantized(x / scalar(c, scale), c.has(zero) ? scalar(c, zero) : Tensor(), c.has(zero) ? c.type(zero) : otherwise);
}

template <bool is_product>
Results qlinear_binary(Call& c) {
  const Tensor a = dequantized(c, 0, 1, 2), b = dequantized(c, 3, 4, 5);
  return {requantized(c, is_product ? a * b : a + b, 6, 7, c.type(0))};
}
Results qlinear_sigmoid(Call& c) { return {requantized(c, dequantized(c, 0, 1, 2).sigmoid(), 3, 4, c.type(0))}; }
Results qlinear_leaky_relu(Call& c) {
  return {requantized(c, dequantized(c, 0, 1, 2).leaky_relu(c.attribute("alpha", 0.01)), 3, 4, c.type(0))};
}
Results qlinear_softmax(Call& c) {
  const int axis = normal_axis(c, c.attribute("axis", -1), c.rank(0));
  return {requantized(c, dequantized(c, 0, 1, 2).softmax(axis), 3, 4, c.type(0))};
}
Results qlinear_global_average_pool(Call& c) {
  const Tensor x = dequantized(c, 0, 1, 2);
  const bool is_last = c.flag("channels_last");
  std::vector<int> axes;
  for (int i = is_last ? 1 : 2; i < x.ndim() - (is_last ? 1 : 0); ++i) axes.push_back(i);
  return {requantized(c, x.mean(axes, {.keepdim = true, .dtype = {}}), 3, 4, c.type(0))};
}
Results qlinear_concat(Call& c) {
  std::vector<Tensor> parts;
  for (size_t i = 2; i + 2 < c.input_count(); i += 3) parts.push_back(dequantized(c, i, i + 1, i + 2));
  return {requantized(c, Tensor::cat(parts, normal_axis(c, c.required_integer("axis"), c.rank(2))), 0, 1, c.type(1))};
}
Results qlinear_where(Call& c) {
  return {requantized(c, c.tensor(0).where(dequantized(c, 1, 2, 3), dequantized(c, 4, 5, 6)), 7, 8, c.type(1))};
}

Tensor integer_product(const Call& c, size_t a, size_t a_zero, size_t b, size_t b_zero) {
  return integer_matmul(c.tensor(a), by_row(zero_point(c, a_zero)), c.tensor(b), by_column(zero_point(c, b_zero)));
}
Results matmul_integer_to_float(Call& c) {
  Tensor y = integer_product(c, 0, 4, 1, 5).cast(DType::float32) * (by_row(c.tensor(2)) * by_column(c.tensor(3)));
  if (c.has(6)) y = y + c.tensor(6);
  return results(y);
}
Results dynamic_quantize_matmul(Call& c) {
  const DynamicCodes a = dynamic_codes(c.tensor(0));
  const Tensor sums = integer_matmul(a.codes, a.zero, c.tensor(1), by_column(zero_point(c, 3)));
  Tensor y = sums.cast(DType::float32) * (a.scale * by_column(c.tensor(2)));
  if (c.has(4)) y = y + c.tensor(4);
  return results(y);
}
Results q_gemm(Call& c) {
  const Tensor a = c.flag("transA") ? c.tensor(0).T() : c.tensor(0), b = c.flag("transB") ? c.tensor(3).T() : c.tensor(3);
  Tensor sums = integer_matmul(a, by_row(zero_point(c, 2)), b, by_column(zero_point(c, 5)));
  if (c.has(6)) sums = sums + c.tensor(6);
  const Tensor y = sums.cast(DType::float32) * (by_row(c.tensor(1)) * by_column(c.tensor(4)) * c.attribute("alpha", 1.0));
  if (!c.has(7)) return results(y);
  return {requantized(c, y, 7, 8, c.type(0))};
}

// Attention

/// What a mask of one of several forms allows, (batch, 1, 1 or queries, keys).
Tensor allowed_by(const Call& c, const Tensor& mask, int64_t batch, int64_t keys) {
  const Tensor wide = mask.cast(DType::int64);
  if (mask.ndim() == 1) {
    const auto part = [&](int64_t i) { return wide.shrink({{i * batch, (i + 1) * batch}}).reshape({batch, 1, 1, 1}); };
    if (mask.numel() == batch) return key_positions(keys) < part(0);
    if (mask.numel() == 2 * batch) return (key_positions(keys) < part(0)) & (key_positions(keys) >= part(1));
    c.fail(fmt::format("a mask of {} elements for {} sequences", mask.numel(), batch));
  }
  if (mask.ndim() == 2) return (wide != 0).reshape({batch, 1, 1, mask.size(1)});
  if (mask.ndim() == 3) return (wide != 0).unsqueeze(1);
  c.fail("a mask of four axes is not supported");
}

/// (batch, length, heads * size) of queries, keys and values to the results of attention.
Results attend(const Call& c, AttentionCall a, const Tensor& mask, const Tensor& bias) {
  const int64_t queries = a.q.size(2), keys = a.k.size(2);
  a.scale = c.attribute("scale", 0.0);
  if (a.scale == 0) a.scale = 1 / std::sqrt(double(a.q.size(3)));
  a.bias = bias;
  if (mask.defined()) {  // what is masked gets a large negative number
    const double masked = c.attribute("mask_filter_value", -10000.0);
    const Tensor add = allowed_by(c, mask, a.q.size(0), keys).where(0.0, masked).cast(a.q.dtype()).contiguous();
    a.may_close = bias.defined() || !std::isfinite(masked) || a.q.dtype() == DType::float16;
    a.bias = bias.defined() ? bias + add : add;
  }
  if (c.flag("unidirectional")) a.allowed = key_positions(keys) <= query_positions(queries) + (keys - queries);
  return {Value(join_heads(a.compute().y)), Value(a.k), Value(a.v)};
}

/// Queries, keys and values as one product, and what came before them.
Results attention_of(const Call& c, const Tensor& projected, const Tensor& mask, const Tensor& past, const Tensor& bias) {
  const int64_t heads = c.required_integer("num_heads"), width = projected.size(2);
  const Tensor stored = projected.contiguous();  // else parts of it would be computed where they are used
  Sizes sizes = c.attribute("qkv_hidden_sizes", Sizes(3, width / 3));
  if (sizes.size() != 3) c.fail("qkv_hidden_sizes");
  const std::vector<Tensor> parts = stored.split(sizes, 2);
  AttentionCall a{.q = split_heads(parts[0], heads), .k = split_heads(parts[1], heads), .v = split_heads(parts[2], heads)};
  if (past.defined()) {  // (2, batch, heads, length, size)
    a.k = Tensor::cat({past[0], a.k}, 2);
    a.v = Tensor::cat({past[1], a.v}, 2);
  }
  Results out = attend(c, a, mask, bias);
  return {out[0], Value(Tensor::stack({out[1].tensor(), out[2].tensor()}, 0))};
}

Results attention(Call& c) {
  if (c.flag("do_rotary")) c.fail("rotary embeddings within attention are not supported");
  Tensor projected = c.tensor(0).matmul(c.tensor(1));
  if (c.has(2)) projected = projected + c.tensor(2);
  return attention_of(c, projected, c.tensor_or_none(3), c.tensor_or_none(4), c.tensor_or_none(5));
}

Results q_attention(Call& c) {
  const Tensor sums = integer_product(c, 0, 6, 1, 7);
  const Tensor projected = sums.cast(DType::float32) * (by_row(c.tensor(3)) * by_column(c.tensor(4))) + c.tensor(2);
  return attention_of(c, projected, c.tensor_or_none(5), c.tensor_or_none(8), {});
}

Results multi_head_attention(Call& c) {
  const int64_t heads = c.required_integer("num_heads");
  const Tensor& query = c.tensor(0);
  AttentionCall a;
  if (query.ndim() == 5) {  // (batch, length, heads, 3, size)
    const auto part = [&](int64_t i) {
      const std::vector<Index> indices{Index(Ellipsis{}), Index(i), Index(Slice{})};
      return query.get_item(indices).transpose(1, 2);
    };
    a = {.q = part(0), .k = part(1), .v = part(2)};
  } else {
    const Tensor bias = c.tensor_or_none(3);
    const int64_t width = query.size(2);
    const auto moved = [&](const Tensor& x, int64_t from, int64_t size) {
      return split_heads(bias.defined() ? x + bias.shrink({{from, from + size}}) : x, heads);
    };
    a.q = moved(query, 0, width);
    const Tensor& key = c.tensor(1);
    if (key.ndim() == 5) {  // (batch, length, heads, 2, size)
      const auto part = [&](int64_t i) {
        const std::vector<Index> indices{Index(Ellipsis{}), Index(i), Index(Slice{})};
        return key.get_item(indices).transpose(1, 2);
      };
      a.k = part(0);
      a.v = part(1);
    } else if (key.ndim() == 4) {
      a.k = key;
      a.v = c.tensor(2);
    } else {
      a.k = moved(key, width, width);
      a.v = moved(c.tensor(2), 2 * width, c.tensor(2).size(2));
    }
  }
  if (c.has(6)) {
    a.k = Tensor::cat({c.tensor(6), a.k}, 2);
    a.v = Tensor::cat({c.tensor(7), a.v}, 2);
  }
  return attend(c, a, c.tensor_or_none(4), c.tensor_or_none(5));
}

/// New rows put behind the valid ones of a cache, a different number for each sequence; both (batch, heads, length, size).
Tensor appended(const Tensor& past, const Tensor& now, const Tensor& valid, int64_t length) {
  if (!past.defined() && now.size(2) == length) return now;
  const Tensor place = Tensor::arange(length, {.dtype = DType::int64}).reshape({1, 1, length, 1}) - valid;
  const Tensor is_new = (place >= 0) & (place < now.size(2));
  const Sizes shape{now.size(0), now.size(1), length, now.size(3)};
  const Tensor from = now.gather(2, is_new.where(place, 0).expand(shape));
  const Tensor before = past.defined() ? past.pad_to({-1, -1, length, -1}) : Tensor::zeros(shape, {.dtype = now.dtype()});
  return is_new.where(from, before);
}

Results group_query_attention(Call& c) {
  constexpr int64_t most_heads = 1 << 20;
  const int64_t heads = c.attribute_within("num_heads", 0, 1, most_heads), kv_heads = c.attribute_within("kv_num_heads", 0, 1, most_heads);
  const Tensor& query = c.tensor(0);
  const int64_t batch = query.size(0), queries = query.size(1);
  AttentionCall a;
  if (c.has(1)) {
    a = {.q = split_heads(query, heads), .k = split_heads(c.tensor(1), kv_heads), .v = split_heads(c.tensor(2), kv_heads)};
  } else {
    const int64_t size = query.size(2) / (heads + 2 * kv_heads);
    const std::vector<Tensor> parts = query.split(Sizes{heads * size, kv_heads * size, kv_heads * size}, 2);
    a = {.q = split_heads(parts[0], heads), .k = split_heads(parts[1], kv_heads), .v = split_heads(parts[2], kv_heads)};
  }
  const Tensor past_key = c.tensor_or_none(3), past_value = c.tensor_or_none(4);
  const int64_t cached = past_key.defined() ? past_key.size(2) : 0;
  const int64_t total = c.has(6) && host_of(c.value(6)) ? c.integer(6) : cached + queries;
  const Tensor lengths = c.tensor(5).cast(DType::int64).reshape({batch, 1, 1, 1}) + 1;  // with the new ones
  const bool is_prompt = total == queries;
  const Tensor valid = is_prompt ? lengths * 0 : lengths - queries;
  const Tensor at = query_positions(queries) + valid;  // (batch, 1, queries, 1)
  if (c.flag("do_rotary")) {
    const Tensor places = c.has(9) ? c.tensor(9).cast(DType::int64) : at.reshape({batch, queries});
    const Tensor cosines = c.tensor(7)[places], sines = c.tensor(8)[places];
    const bool is_interleaved = c.flag("rotary_interleaved");
    const auto turned = [&](const Tensor& x) {
      return rotate(x.transpose(1, 2), cosines, sines, is_interleaved, 2 * cosines.size(-1)).transpose(1, 2);
    };
    a.q = turned(a.q);
    a.k = turned(a.k);
  }
  const int64_t length = std::max(cached, total);
  const Tensor key = appended(past_key, a.k, valid, length), value = appended(past_value, a.v, valid, length);
  a.k = key;
  a.v = value;
  a.scale = c.attribute("scale", 0.0);
  if (a.scale == 0) a.scale = 1 / std::sqrt(double(a.q.size(3)));
  a.softcap = c.attribute("softcap", 0.0);
  a.allowed = key_positions(length) <= at;
  if (const int64_t window = c.attribute("local_window_size", -1); window > 0)
    a.allowed = a.allowed & (key_positions(length) > at - window);
  a.bias = c.tensor_or_none(10);
  if (c.flag("smooth_softmax") || c.has(11)) c.fail("a sink for attention is not supported");
  return {Value(join_heads(a.compute().y)), Value(key), Value(value)};
}

Results rotary_embedding(Call& c) {
  const Tensor &x = c.tensor(0), &positions = c.tensor(1), &cosines = c.tensor(2), &sines = c.tensor(3);
  const bool is_flat = x.ndim() == 3;
  const int64_t named = c.attribute("rotary_embedding_dim", 0), size = named ? named : 2 * cosines.size(1);
  const int64_t heads = c.attribute("num_heads", 0);
  if (size < 2 || size % 2 != 0) c.fail(fmt::format("{} numbers that turn in pairs", size));
  const Tensor by_head = is_flat ? x.reshape({x.size(0), x.size(1), heads ? heads : x.size(2) / size, -1}) : x.transpose(1, 2);
  const Tensor wide = positions.cast(DType::int64);
  const Tensor at =
      positions.numel() == 1 ? wide.reshape({1, 1}) + Tensor::arange(by_head.size(1), {.dtype = DType::int64}).reshape({1, -1}) : wide;
  const Tensor y = rotate(by_head, cosines[at], sines[at], c.flag("interleaved"), size);
  return results(is_flat ? y.reshape(x.shape()) : y.transpose(1, 2));
}

constexpr OperatorRow rows[] = {
    {microsoft_domain, "Attention", 1, attention},
    {microsoft_domain, "BiasAdd", 1, bias_add},
    {microsoft_domain, "BiasGelu", 1, bias_gelu},
    {microsoft_domain, "BiasSplitGelu", 1, bias_split_gelu},
    {microsoft_domain, "DynamicQuantizeMatMul", 1, dynamic_quantize_matmul},
    {microsoft_domain, "EmbedLayerNormalization", 1, embed_layer_normalization},
    {microsoft_domain, "FastGelu", 1, fast_gelu},
    {microsoft_domain, "FusedConv", 1, fused_conv},
    {microsoft_domain, "FusedGemm", 1, fused_gemm},
    {microsoft_domain, "FusedMatMul", 1, fused_matmul},
    {microsoft_domain, "GatherBlockQuantized", 1, gather_block_quantized},
    {microsoft_domain, "Gelu", 1, gelu},
    {microsoft_domain, "GroupQueryAttention", 1, group_query_attention},
    {microsoft_domain, "MatMulIntegerToFloat", 1, matmul_integer_to_float},
    {microsoft_domain, "MatMulNBits", 1, matmul_n_bits},
    {microsoft_domain, "MultiHeadAttention", 1, multi_head_attention},
    {microsoft_domain, "QAttention", 1, q_attention},
    {microsoft_domain, "QEmbedLayerNormalization", 1, q_embed_layer_normalization},
    {microsoft_domain, "QGemm", 1, q_gemm},
    {microsoft_domain, "QLinearAdd", 1, qlinear_binary<false>},
    {microsoft_domain, "QLinearConcat", 1, qlinear_concat},
    {microsoft_domain, "QLinearGlobalAveragePool", 1, qlinear_global_average_pool},
    {microsoft_domain, "QLinearLeakyRelu", 1, qlinear_leaky_relu},
    {microsoft_domain, "QLinearMul", 1, qlinear_binary<true>},
    {microsoft_domain, "QLinearSigmoid", 1, qlinear_sigmoid},
    {microsoft_domain, "QLinearSoftmax", 1, qlinear_softmax},
    {microsoft_domain, "QLinearWhere", 1, qlinear_where},
    {microsoft_domain, "QuickGelu", 1, quick_gelu},
    {microsoft_domain, "RotaryEmbedding", 1, rotary_embedding},
    {microsoft_domain, "SimplifiedLayerNormalization", 1, simplified_layer_normalization},
    {microsoft_domain, "SkipLayerNormalization", 1, skip_layer_normalization},
    {microsoft_domain, "SkipSimplifiedLayerNormalization", 1, skip_simplified_layer_normalization},
    {onnx_domain, "SimplifiedLayerNormalization", 1, simplified_layer_normalization},  // where onnxruntime's exports have it
};

}  // namespace

std::span<const OperatorRow> microsoft_operators() { return rows; }

}  // namespace tinygrad::onnx
