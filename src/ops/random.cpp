#include "ops/random.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

int64_t count_of(std::string_view op, const Shape& shape) {
  if (!all_known(shape)) throw ShapeError(fmt::format("{}: the shape {} is symbolic, expects numbers", op, to_string(shape)));
  for (const SInt& s : shape)
    if (s.value() < 0) throw ShapeError(fmt::format("{}: {} has a negative size", op, to_string(shape)));
  return numel(shape).value();
}

/// Two uint32 values as one uint64.
UOp joined(const UOp& low, const UOp& high) {
  return bitwise_or(lshift(tinygrad::cast(high, DType::uint64), 32), tinygrad::cast(low, DType::uint64));
}

/// The two words of each Threefry block: all the low ones, then all the high ones.
UOp blocks(const UOp& key, const UOp& low, const UOp& high) {
  const UOp bits = threefry(joined(low, high), key);
  const UOp words[] = {tinygrad::cast(bits, DType::uint32), tinygrad::cast(rshift(bits, 32), DType::uint32)};
  return cat(words);
}

/// A vector of two words as one uint64 scalar.
UOp as_key(const UOp& words) { return ops::reshape(joined(shrink_axis(words, 0, 0, 1), shrink_axis(words, 0, 1, 2)), {}); }

/// The words from the `offset`-th on, at most 2^32 - 1 of them: each run of as many has a key of its own, made from the counter.
UOp run_of_bits(const RandomState& state, int64_t offset, int64_t count) {
  const UOp low = shrink_axis(state.counter, 0, 0, 1), high = shrink_axis(state.counter, 0, 1, 2);
  const UOp from = add(low, constant(DType::uint32, offset & 0xffffffff));
  const UOp carry = tinygrad::cast(lt(from, low), DType::uint32);
  const UOp above = add(add(high, constant(DType::uint32, offset >> 32)), carry);
  const UOp key = as_key(blocks(as_key(state.key), from, above));
  const int64_t half = (count + 1) / 2;
  const UOp position = iota(half, DType::uint32);
  return shrink_axis(blocks(key, position, add(position, constant(DType::uint32, half))), 0, 0, count);
}

void check_state(const RandomState& state) {
  for (const UOp& u : {state.key, state.counter})
    if (u.dtype() != DType::uint32 || shape_of(u) != make_shape({2}))
      throw DTypeError(
          fmt::format("random: key and counter must be two uint32 words each, got {} {}", to_string(shape_of(u)), repr(u.dtype())));
}

DType checked_float(std::string_view op, std::optional<DType> dtype, const OpsContext& ctx) {
  const DType d = dtype.value_or(ctx.default_float);
  if (!is_float(d)) throw DTypeError(fmt::format("{}: got {}, expects a float dtype", op, repr(d)));
  return d;
}

int64_t fan_in(std::string_view op, const Shape& shape) {
  if (shape.empty()) throw ShapeError(fmt::format("{}: got (), expects at least one axis", op));
  count_of(op, shape);
  return numel(Shape(shape.begin() + 1, shape.end())).value();
}

}  // namespace

UOp random_bits(const RandomState& state, int64_t count) {
  check_state(state);
  if (count < 0) throw ValueError(fmt::format("random_bits: {} words, expects at least 0", count));
  if (count == 0) return zeros(Shape{0}, DType::uint32);
  constexpr int64_t run = std::numeric_limits<uint32_t>::max();
  std::vector<UOp> parts;
  for (int64_t offset = 0; offset < count; offset += run) parts.push_back(run_of_bits(state, offset, std::min(run, count - offset)));
  return parts.size() == 1 ? parts[0] : cat(parts);
}

int64_t random_words(int64_t count, DType dtype) { return (count * int64_t(itemsize(dtype)) + 3) / 4; }

UOp rand(const RandomState& state, const Shape& shape, std::optional<DType> dtype, const OpsContext& ctx) {
  const DType d = checked_float("rand", dtype, ctx);
  const int64_t n = count_of("rand", shape);
  const DType raw = itemsize(d) == 1 ? DType::uint8 : itemsize(d) == 2 ? DType::uint16 : itemsize(d) == 4 ? DType::uint32 : DType::uint64;
  if (n == 0) return zeros(shape, d, ctx);
  const UOp bits = ops::bitcast(random_bits(state, random_words(n, d)), raw);
  const UOp one = constant(Scalar::of(1.0, d).bitcast(raw));
  const UOp mantissa = bitwise_or(rshift(bits, bitsize(d) - finfo(d).mantissa_bits), one);
  return ops::reshape(sub(shrink_axis(ops::bitcast(mantissa, d), 0, 0, n), 1), shape);
}

UOp randn(const RandomState& state, const Shape& shape, std::optional<DType> dtype, const OpsContext& ctx) {
  const DType d = dtype.value_or(ctx.default_float);
  if (is_bool(d) || d == DType::void_) throw DTypeError(fmt::format("randn: got {}, expects a dtype of numbers", repr(d)));
  Shape two{2};
  two.append(shape.begin(), shape.end());
  const UOp u = rand(state, two, DType::float32, ctx);
  const Expr angle = ops::reshape(shrink_axis(u, 0, 0, 1), shape), radius = ops::reshape(shrink_axis(u, 0, 1, 2), shape);
  // 1 - u is in (0, 1], so its logarithm is finite.
  return tinygrad::cast(Expr(cos(angle * (2 * std::numbers::pi))) * sqrt(Expr(log(1 - radius)) * -2), d);
}

int64_t randint_words(int64_t low, int64_t high) {
  const uint64_t span = uint64_t(high) - uint64_t(low);
  return span <= uint64_t{1} << 16 ? 1 : span <= uint64_t{1} << 32 ? 2 : 4;
}

namespace {

/// The upper 32 bits of uint64s, or of their products with `factor`.
UOp high_half(const UOp& x, const UOp& factor) { return rshift(factor ? mul(x, factor) : x, 32); }

/// The upper 64 bits of the product of two uint64s.
UOp high_product(const UOp& a, const UOp& b) {
  const Scalar low_half = Scalar::of(uint64_t{0xffffffff});
  const Expr al = bitwise_and(a, low_half), ah = rshift(a, 32), bl = bitwise_and(b, low_half), bh = rshift(b, 32);
  const Expr middle = ah * bl + rshift(al * bl, 32);
  const Expr other = al * bh + bitwise_and(middle, low_half);
  return ah * bh + rshift(middle, 32) + rshift(other, 32);
}

/// floor((high 2^64 + low) span / 2^128).
UOp scaled(const UOp& high, const UOp& low, const UOp& span) {
  const UOp carried = high_product(low, span);
  const UOp carries = lt(add(mul(high, span), carried), carried);
  return add(high_product(high, span), tinygrad::cast(carries, DType::uint64));
}

}  // namespace

UOp randint(const RandomState& state, const Shape& shape, int64_t low, int64_t high, DType dtype, const OpsContext& ctx) {
  if (low >= high) throw ValueError(fmt::format("randint: low {} must be less than high {}", low, high));
  if (!is_int(dtype)) throw DTypeError(fmt::format("randint: got {}, expects an integer dtype", repr(dtype)));
  for (int64_t n : {low, high - 1})
    if (!holds(dtype, Scalar::of(n))) throw ValueError(fmt::format("randint: {} does not hold {} to {}", repr(dtype), low, high - 1));
  const int64_t n = count_of("randint", shape), words = randint_words(low, high);
  if (n == 0) return zeros(shape, dtype, ctx);
  const UOp bits = random_bits(state, n * words);
  const auto word = [&](int64_t i) { return Expr(tinygrad::cast(shrink_axis(bits, 0, i * n, (i + 1) * n), DType::uint64)); };
  const UOp span = constant(Scalar::of(uint64_t(high) - uint64_t(low)));
  const UOp drawn = words == 1   ? high_half(word(0), span)
                    : words == 2 ? high_half(word(0) * span + high_half(word(1), span), {})
                                 : scaled(joined(word(1), word(0)), joined(word(3), word(2)), span);
  return ops::reshape(tinygrad::cast(add(drawn, constant(Scalar::of(uint64_t(low)))), dtype), shape);
}

UOp uniform(const RandomState& state, const Shape& shape, double low, double high, std::optional<DType> dtype, const OpsContext& ctx) {
  if (!(low < high)) throw ValueError(fmt::format("uniform: low {} must be less than high {}", low, high));
  const DType d = dtype.value_or(ctx.default_float);
  if (!is_float(d) && !is_int(d)) throw DTypeError(fmt::format("uniform: got {}, expects a dtype of numbers", repr(d)));
  if (is_int(d) && Scalar::of(low).cast(d).as_double() != low) throw ValueError(fmt::format("uniform: low {} is no {}", low, repr(d)));
  const UOp scaled = tinygrad::cast(mul(rand(state, shape, ctx.default_float, ctx), high - low), d);
  return add(scaled, is_int(d) ? Operand(int64_t(low)) : Operand(low), ctx);
}

UOp normal(const RandomState& state, const Shape& shape, double mean, double std, std::optional<DType> dtype, const OpsContext& ctx) {
  if (!(std >= 0)) throw ValueError(fmt::format("normal: the standard deviation {} is negative or NaN", std));
  checked_float("normal", dtype, ctx);
  return add(mul(randn(state, shape, dtype, ctx), std), mean);
}

UOp scaled_uniform(const RandomState& state, const Shape& shape, std::optional<DType> dtype, const OpsContext& ctx) {
  checked_float("scaled_uniform", dtype, ctx);
  return mul(uniform(state, shape, -1.0, 1.0, dtype, ctx), 1 / std::sqrt(double(count_of("scaled_uniform", shape))));
}

UOp glorot_uniform(const RandomState& state, const Shape& shape, std::optional<DType> dtype, const OpsContext& ctx) {
  checked_float("glorot_uniform", dtype, ctx);
  const int64_t in = fan_in("glorot_uniform", shape);
  const double bound = std::sqrt(6.0 / double(shape[0].value() + in));
  return uniform(state, shape, -bound, bound, dtype, ctx);
}

UOp kaiming_uniform(const RandomState& state, const Shape& shape, double a, std::optional<DType> dtype, const OpsContext& ctx) {
  checked_float("kaiming_uniform", dtype, ctx);
  const double bound = std::sqrt(6.0 / (1 + a * a) / double(fan_in("kaiming_uniform", shape)));
  return uniform(state, shape, -bound, bound, dtype, ctx);
}

UOp kaiming_normal(const RandomState& state, const Shape& shape, double a, std::optional<DType> dtype, const OpsContext& ctx) {
  const double std = std::sqrt(2.0 / (1 + a * a) / double(fan_in("kaiming_normal", shape)));
  return normal(state, shape, 0.0, std, dtype, ctx);
}

UOp randperm(const RandomState& state, int64_t n, DType dtype, const OpsContext& ctx) {
  if (is_int(dtype) && Scalar::of(n - 1).as_double() > max_value(dtype).as_double())
    throw ValueError(fmt::format("randperm: {} does not hold 0 to {}", repr(dtype), n - 1));
  return tinygrad::cast(argsort(contiguous(rand(state, Shape{n}, {}, ctx)), 0, false, ctx), dtype);
}

UOp multinomial(const RandomState& state, const UOp& weights, int64_t samples, bool replacement, const OpsContext& ctx) {
  const Shape& in = shape_of(weights);
  if (in.empty() || in.size() > 2) throw ShapeError(fmt::format("multinomial: expects weights (n) or (rows, n), got {}", to_string(in)));
  if (samples <= 0) throw ValueError(fmt::format("multinomial: {} samples, expects at least 1", samples));
  const UOp w = in.size() == 1 ? ops::unsqueeze(weights, 0) : weights;
  const SInt &rows = shape_of(w)[0], &n = shape_of(w)[1];
  if (surely_less(n, replacement ? 1 : samples))
    throw ValueError(
        fmt::format("multinomial: {} samples {} replacement from {}", samples, replacement ? "with" : "without", to_string(n)));
  UOp drawn;
  if (replacement || samples == 1) {
    const UOp sums = tinygrad::cast(cumsum(w, 1), DType::float32);
    const UOp cdf = div(sums, shrink_axis(sums, 1, n - 1, n));
    const UOp u = rand(state, Shape{samples, rows, 1}, DType::float32, ctx);
    drawn = ops::transpose(count(ge(u, cdf), 2), 0, 1);
  } else {  // Efraimidis and Spirakis (2006)
    const UOp u = rand(state, shape_of(w), DType::float32, ctx);
    drawn = topk(contiguous(div(log2(u), w)), samples, 1).indices;
  }
  return tinygrad::cast(in.size() == 1 ? ops::squeeze(drawn, 0) : drawn, index_dtype(n));
}

UOp dropout(const RandomState& state, const UOp& x, double p, const OpsContext& ctx) {
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("dropout: the probability {} is not within [0, 1]", p));
  if (p == 0) return x;
  if (p == 1) return zeros_like(x);
  // Stored, so that forward and backward read one mask.
  const UOp keep = contiguous(ge(rand(state, shape_of(x), {}, ctx), p));
  return div(ops::where(keep, x, 0), 1.0 - p, Rounding::none, ctx);
}

}  // namespace tinygrad::ops
