#include "ops/elementwise.h"

#include <cmath>

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include "ops/activation.h"
#include "ops/creation.h"
#include "ops/expr.h"
#include "ops/known.h"
#include "ops/movement.h"
#include "ops/reduce.h"
#include "shape/device.h"
#include "uop/build.h"

namespace tinygrad::ops {

namespace {

/// `what` is whom errors name: the caller.
UOp binary(Op op, const Operand& a, const Operand& b, const OpsContext& ctx, const char* what = __builtin_FUNCTION()) {
  const auto [x, y] = broadcast_operands(a, b, ctx, what);
  return alu(op, {x, y});
}

/// Beside unsigned integers a negative number as they have it, modulo their size: sums, products and bits are right modulo that.
Operand modulo(const Operand& number, const Operand& beside) {
  if (!number.is_number() || beside.is_number() || !is_unsigned(beside.node().dtype()) || is_float(number.number().dtype())) return number;
  const Scalar& n = number.number();
  return is_signed(n.dtype()) && n.as_int() < 0 ? Operand(n.cast(beside.node().dtype())) : number;
}

UOp modular(Op op, const Operand& a, const Operand& b, const OpsContext& ctx, const char* what = __builtin_FUNCTION()) {
  return binary(op, modulo(a, b), modulo(b, a), ctx, what);
}

UOp bits(const char* what, Op op, const Operand& a, const Operand& b, const OpsContext& ctx) {
  const auto [x, y] = broadcast_operands(modulo(a, b), modulo(b, a), ctx, what);
  if (is_float(x.dtype())) throw DTypeError(fmt::format("{}: got {}, expects integers or bool", what, repr(x.dtype())));
  return alu(op, {x, y});
}

UOp shift(const char* what, Op op, const Operand& a, const Operand& b, const OpsContext& ctx) {
  const auto [x, y] = broadcast_operands(a, b, ctx, what);
  if (!is_int(x.dtype())) throw DTypeError(fmt::format("{}: got {}, expects integers", what, repr(x.dtype())));
  return alu(op, {x, y});
}

/// How a number lies to the values of an integer dtype: below or above all of them, or between `floor` and the next one.
struct Place {
  bool below = false, above = false, between = false;
  Scalar floor = {};
};

Place place_of(const Scalar& number, DType dtype) {
  if (!is_float(number.dtype())) {
    if (holds(dtype, number)) return {.floor = number.cast(dtype)};
    const bool below = is_signed(number.dtype()) && number.as_int() < 0;
    return {.below = below, .above = !below};
  }
  const double value = number.as_double(), floor = std::floor(value);
  const Scalar whole = Scalar::of(floor);
  if (std::isnan(value) || !holds(dtype, whole)) return {.below = floor < 0, .above = floor > 0};
  return {.between = floor != value, .floor = whole.cast(dtype)};
}

enum class Relation : uint8_t { eq, lt, le };

UOp everywhere(const UOp& x, bool value) { return broadcast_to(bool_const(value), shape_of(x)); }

/// An integer x compared with a number, exactly: one that x's dtype does not hold is neither wrapped nor rounded. `swapped`: the number
/// stands on the left.
UOp compare_with_number(Relation relation, const UOp& x, const Scalar& number, bool swapped) {
  const Place p = place_of(number, x.dtype());
  if (number.is_nan()) return everywhere(x, false);
  if (p.below || p.above) return everywhere(x, relation != Relation::eq && p.below == swapped);
  const UOp floor = constant(p.floor);
  const auto less = [&](const UOp& a, const UOp& b) { return alu(Op::CMPLT, {a, b}); };
  switch (relation) {
    case Relation::eq: return p.between ? everywhere(x, false) : alu(Op::CMPEQ, {swapped ? floor : x, swapped ? x : floor});
    case Relation::lt: return swapped ? less(floor, x) : p.between ? ops::logical_not(less(floor, x)) : less(x, floor);
    default: return !swapped ? ops::logical_not(less(floor, x)) : p.between ? less(floor, x) : ops::logical_not(less(x, floor));
  }
}

/// A signed integer compared with a uint64, which no dtype holds both of.
UOp compare_signs(Relation relation, const UOp& a, const UOp& b) {
  const bool left = is_signed(a.dtype());
  const UOp negative = lt(left ? a : b, 0);
  const auto [x, y] = broadcast_operands(tinygrad::cast(a, DType::uint64), tinygrad::cast(b, DType::uint64));
  const UOp same_sign = relation == Relation::eq   ? alu(Op::CMPEQ, {x, y})
                        : relation == Relation::lt ? alu(Op::CMPLT, {x, y})
                                                   : ops::logical_not(alu(Op::CMPLT, {y, x}));
  return relation != Relation::eq && left ? bitwise_or(negative, same_sign) : bitwise_and(ops::logical_not(negative), same_sign);
}

/// What integers need of their own to be compared exactly; null where promotion does it.
UOp compare_integers(Relation relation, const Operand& a, const Operand& b) {
  if (a.is_number() != b.is_number()) {
    const UOp& x = a.is_number() ? b.node() : a.node();
    const Scalar& number = a.is_number() ? a.number() : b.number();
    return is_int(x.dtype()) ? compare_with_number(relation, x, number, a.is_number()) : UOp();
  }
  if (a.is_number()) return {};
  const DType s = a.node().dtype(), t = b.node().dtype();
  const bool mixed = (is_signed(s) && t == DType::uint64) || (s == DType::uint64 && is_signed(t));
  return mixed ? compare_signs(relation, a.node(), b.node()) : UOp();
}

/// x^n by repeated squaring.
UOp power(UOp x, uint64_t n) {
  UOp y;
  for (; n; n >>= 1) {
    if (n & 1) y = y ? mul(y, x) : x;
    if (n > 1) x = mul(x, x);
  }
  return y;
}

/// The exponents that PyTorch computes without a power function; null for others.
UOp power_of_float(const UOp& x, double e) {
  if (e == 0) return ones_like(x);
  if (e == 1) return x;
  if (e == 2) return square(x);
  if (e == 3) return in_float32(x, {}, [](const Expr& v) { return v * v * v; });
  if (e == 0.5) return sqrt(x);
  if (e == -0.5) return rsqrt(x);
  if (e == -1) return reciprocal(x);
  if (e == -2) return in_float32(x, {}, [](const Expr& v) { return reciprocal(v * v); });
  return {};
}

void check_exponent(const Scalar& e) {
  if (is_signed(e.dtype()) && e.as_int() < 0)
    throw ValueError(fmt::format("pow: integers to the power {} are fractions; cast the base to a float", e.to_string()));
}

UOp power_of_int(const UOp& x, const Scalar& e) {
  check_exponent(e);
  return e.is_zero() ? ones_like(x) : power(x, e.as_uint());
}

/// What a value is a view of that shows one element only.
UOp same_everywhere(UOp u) {
  while (u.is(Op::EXPAND) || u.is(Op::RESHAPE) || u.is(Op::WEAK) || u.is(Op::TENSOR)) u = UOp(u.src(0));
  return u;
}

}  // namespace

UOp add(const Operand& a, const Operand& b, const OpsContext& ctx) { return modular(Op::ADD, a, b, ctx); }
UOp sub(const Operand& a, const Operand& b, const OpsContext& ctx) { return modular(Op::SUB, a, b, ctx); }
UOp mul(const Operand& a, const Operand& b, const OpsContext& ctx) { return modular(Op::MUL, a, b, ctx); }

namespace {

/// The leading half of the bits of a float of at least 32 bits: products of two halves are exact.
Expr leading(const Expr& x) {
  const bool wide = x.dtype() == DType::float64;
  const DType bits = wide ? DType::uint64 : DType::uint32;
  const UOp mask = constant(wide ? Scalar::from_uint(~uint64_t{0} << 27, bits) : Scalar::from_uint(0xFFFF'F000, bits));
  return tinygrad::bitcast(alu(Op::AND, {tinygrad::bitcast(x, bits), mask}), x.dtype());
}

/// The whole quotient, as far as the dtype has it, and x - quotient * y, which is exact: with and without fused operations.
struct Reduced {
  Expr quotient, rest;
};
Reduced reduced_by(const Expr& x, const Expr& y) {
  const Expr q = trunc(x / y), p = q * y, a = leading(q), b = leading(y), c = q - a, d = y - b;
  const Expr lost = a * b - p + a * d + c * b + c * d;  // of the product, by its rounding
  return {q, x - p - lost};
}

/// The remainder with the sign of x, as C's fmod. A quotient with more bits than the dtype leaves a rest, which the second reduction takes.
UOp float_remainder(const Expr& x, const Expr& y) {
  const Reduced first = reduced_by(x, y), second = reduced_by(first.rest, y);
  const Expr r = second.rest, to_zero = ops::where(x < 0, -Expr(abs(y)), abs(y));
  // A quotient that was rounded up to a whole number is one too many.
  const Expr too_many = Expr(ops::ne(r, 0)) & ops::ne(r < 0, x < 0);
  const Expr rest = ops::where(too_many, r + to_zero, ops::where(ops::eq(r, 0), copysign(as_node(0, x.dtype()), x), r));
  const Expr q = detach(first.quotient + second.quotient - ops::where(too_many, to_zero / y, 0));
  // A quotient of 0 has the whole dividend as its remainder, also under an infinite divisor.
  const auto or_whole = [&](const Expr& u) { return ops::where(ops::eq(first.quotient, 0), x, u); };
  return known("equal", or_whole(rest), or_whole(x - q * y));
}

/// The whole number that x and its remainder leave, so that both make up x: 1 / 0.1 is 9, as 0.1 is more than a tenth.
UOp floor_quotient(const UOp& x, const UOp& y) {
  const auto quotient = [](const Expr& n, const Expr& d) -> UOp {
    const Expr r = float_remainder(n, d), whole = n / d;
    const Expr q = (n - r) / d - ops::where(Expr(ops::ne(r, 0)) & ops::ne(r < 0, d < 0), 1, as_node(0, n.dtype()));
    const Expr low = floor(q), nearest = ops::where(q - low > 0.5, low + 1, low);
    const Expr none = Expr(ops::eq(d, 0)) | (Expr(isinf(whole)) & isfinite(n));
    return ops::where(none, whole, ops::where(ops::eq(q, 0), copysign(as_node(0, n.dtype()), whole), nearest));
  };
  return detach(in_float32(x, {}, [&](const Expr& n) { return quotient(n, to_float32(y)); }));
}

}  // namespace

UOp div(const Operand& a, const Operand& b, Rounding rounding, const OpsContext& ctx) {
  auto [x, y] = broadcast_operands(a, b, ctx);
  if (is_int(x.dtype()) && rounding != Rounding::none) return alu(rounding == Rounding::trunc ? Op::CDIV : Op::FLOORDIV, {x, y});
  const DType real = least_upper_float(x.dtype(), ctx.default_float);
  const UOp n = tinygrad::cast(x, real), d = tinygrad::cast(y, real);
  if (rounding == Rounding::floor && is_float(x.dtype())) return floor_quotient(n, d);
  const UOp q = alu(Op::FDIV, {n, d});
  return rounding == Rounding::none ? q : rounding == Rounding::trunc ? trunc(q) : floor(q);
}

UOp fmod(const Operand& a, const Operand& b, const OpsContext& ctx) {
  const auto [x, y] = broadcast_operands(a, b, ctx);
  if (is_int(x.dtype())) return alu(Op::CMOD, {x, y});
  if (is_bool(x.dtype())) throw DTypeError("fmod: got dtypes.bool, expects numbers");
  return in_float32(x, ctx, [&](const Expr& v) { return float_remainder(v, to_float32(y, ctx)); });
}

UOp mod(const Operand& a, const Operand& b, const OpsContext& ctx) {
  const auto [x, y] = broadcast_operands(a, b, ctx);
  if (is_int(x.dtype())) return alu(Op::FLOORMOD, {x, y});
  const Expr r = fmod(x, y);
  return ops::where(Expr(ops::ne(r, 0)) & ops::ne(r < 0, lt(y, 0)), r + y, r);
}

UOp pow(const Operand& base, const Operand& exponent, const OpsContext& ctx) {
  const bool counts = exponent.is_number() && !is_float(exponent.number().dtype());
  if (counts && !base.is_number() && is_int(base.node().dtype())) return power_of_int(base.node(), exponent.number());
  const auto [x, y] = broadcast_operands(base, exponent, ctx);
  if (is_bool(x.dtype())) throw DTypeError("pow: got dtypes.bool, expects numbers");
  if (!exponent.is_number()) {
    if (const Scalar* known = is_int(y.dtype()) ? const_value(same_everywhere(y)) : nullptr) check_exponent(known->cast(y.dtype()));
    return alu(Op::POW, {x, y});
  }
  if (!is_float(x.dtype())) return power_of_int(x, exponent.number());
  const UOp special = power_of_float(x, exponent.number().as_double());
  return special ? special : alu(Op::POW, {x, y});
}

UOp maximum(const Operand& a, const Operand& b, const OpsContext& ctx) { return binary(Op::MAX, a, b, ctx); }

UOp minimum(const Operand& a, const Operand& b, const OpsContext& ctx) {
  const auto [x, y] = broadcast_operands(a, b, ctx);
  const UOp least = inverse(maximum(inverse(x), inverse(y)));
  return x.is_weak() && y.is_weak() ? weak(least) : least;
}

UOp inverse(const UOp& x) { return is_float(x.dtype()) ? -x : bitwise_not(x); }

UOp neg(const UOp& x) { return is_bool(x.dtype()) ? ops::logical_not(x) : -x; }
UOp abs(const UOp& x) { return is_bool(x.dtype()) || is_unsigned(x.dtype()) ? x : maximum(x, neg(x)); }

UOp sign(const UOp& x) {
  if (is_bool(x.dtype())) return x;
  const UOp positive = ops::where(lt(0, x), as_node(1, x.dtype()), 0);
  return is_unsigned(x.dtype()) ? positive : ops::where(lt(x, 0), -1, positive);
}

UOp square(const UOp& x) { return mul(x, x); }
UOp reciprocal(const UOp& x, const OpsContext& ctx) {
  return in_float32(x, ctx, [](const Expr& v) { return alu(Op::RECIPROCAL, {v}); });
}

namespace {

/// Whether an integer bound lies beyond all that a dtype holds, on the side where it leaves every value as it is.
bool is_idle(const std::optional<Operand>& bound, DType d, bool below) {
  if (!bound || !bound->is_number() || !is_int(d) || !is_int(bound->number().dtype()) || holds(d, bound->number())) return false;
  return below == (is_signed(bound->number().dtype()) && bound->number().as_int() < 0);
}

}  // namespace

UOp clamp(const UOp& x, const std::optional<Operand>& min, const std::optional<Operand>& max, const OpsContext& ctx) {
  if (!min && !max) throw ValueError("clamp: neither a minimum nor a maximum given, expects at least one");
  const UOp y = min && !is_idle(min, x.dtype(), true) ? ops::where(lt(x, *min, ctx), *min, x, ctx) : x;
  return max && !is_idle(max, x.dtype(), false) ? ops::where(gt(y, *max, ctx), *max, y, ctx) : y;
}

UOp lerp(const UOp& start, const UOp& end, const Operand& weight, const OpsContext& ctx) {
  const auto [x, y] = broadcast_operands(start, end, ctx);
  const DType result = common_dtype(x, weight, ctx);
  const auto wide = [&](const UOp& u) { return is_float(result) ? tinygrad::cast(u, least_upper_dtype(result, DType::float32)) : u; };
  return tinygrad::cast(add(wide(x), mul(sub(wide(y), wide(x)), weight, ctx), ctx), result);
}

UOp copysign(const Operand& a, const Operand& b, const OpsContext& ctx) {
  const auto [x, y] = broadcast_operands(a, b, ctx);
  const Expr f = to_float(x, ctx), s = to_float(y, ctx), magnitude = abs(f);
  return ops::where((s < 0) | lt(reciprocal(s), 0), -magnitude, magnitude);
}

UOp logaddexp(const Operand& a, const Operand& b, const OpsContext& ctx) {
  const auto [p, q] = broadcast_operands(a, b, ctx);
  const Expr x = to_float32(p, ctx), y = to_float32(q, ctx);
  // The distance of two equal infinities is 0 too.
  const Expr distance = ops::where(ops::eq(x, y), 0, abs(x - y));
  const UOp value = Expr(log1p(exp(-distance))) + maximum(x, y);
  // The derivative is of a form without abs and maximum, whose kinks would have to cancel where x equals y.
  const Expr d = ops::where(Expr(isinf(x)) & ops::eq(x, y), 0, x - y);
  return tinygrad::cast(known("equal", value, (x + y) * 0.5 + (Expr(softplus(d)) - d * 0.5)), to_float(p, ctx).dtype());
}

UOp eq(const Operand& a, const Operand& b, const OpsContext& ctx) {
  if (const UOp exact = compare_integers(Relation::eq, a, b)) return exact;
  return binary(Op::CMPEQ, a, b, ctx);
}

UOp ne(const Operand& a, const Operand& b, const OpsContext& ctx) {
  const UOp exact = compare_integers(Relation::eq, a, b);
  if (!exact) return binary(Op::CMPNE, a, b, ctx);
  return exact.is(Op::CMPEQ) ? alu(Op::CMPNE, {exact.src(0), exact.src(1)}) : ops::logical_not(exact);
}

namespace {

UOp less(const Operand& a, const Operand& b, const OpsContext& ctx, const char* what = __builtin_FUNCTION()) {
  if (const UOp exact = compare_integers(Relation::lt, a, b)) return exact;
  return binary(Op::CMPLT, a, b, ctx, what);
}

UOp not_greater(const Operand& a, const Operand& b, const OpsContext& ctx, const char* what = __builtin_FUNCTION()) {
  if (const UOp exact = compare_integers(Relation::le, a, b)) return exact;
  const auto [x, y] = broadcast_operands(a, b, ctx, what);
  // With NaN neither is less nor equal, so the negation of > will not do for floats.
  if (!is_float(x.dtype())) return ops::logical_not(lt(y, x));
  return bitwise_or(lt(x, y), ops::eq(x, y));
}

}  // namespace

UOp lt(const Operand& a, const Operand& b, const OpsContext& ctx) { return less(a, b, ctx); }
UOp gt(const Operand& a, const Operand& b, const OpsContext& ctx) { return less(b, a, ctx); }
UOp le(const Operand& a, const Operand& b, const OpsContext& ctx) { return not_greater(a, b, ctx); }
UOp ge(const Operand& a, const Operand& b, const OpsContext& ctx) { return not_greater(b, a, ctx); }

UOp where(const Operand& condition, const Operand& a, const Operand& b, const OpsContext& ctx) {
  const auto [x, y] = broadcast_operands(a, b, ctx);
  const UOp c = as_node(condition, DType::bool_);
  Shape shape = broadcast_shape(broadcast_shape(shape_of(x), shape_of(y), "where"), shape_of(c), "where");
  // A source of shape () stands for every element; if all three are, so is the result.
  auto fit = [&](const UOp& u) { return shape_of(u).empty() ? u : broadcast_to(u, shape); };
  return alu(Op::WHERE, {fit(c), fit(x), fit(y)});
}

UOp masked_fill(const UOp& x, const UOp& mask, const Operand& value, const OpsContext& ctx) { return ops::where(mask, value, x, ctx); }

UOp isnan(const UOp& x) { return ops::ne(x, x); }

UOp isinf(const UOp& x, bool detect_positive, bool detect_negative) {
  if (!is_float(x.dtype()) || !(detect_positive || detect_negative)) return broadcast_to(bool_const(false), shape_of(x));
  const double inf = std::numeric_limits<double>::infinity();
  if (!detect_negative) return ops::eq(x, inf);
  if (!detect_positive) return ops::eq(x, -inf);
  return bitwise_or(ops::eq(x, inf), ops::eq(x, -inf));
}

UOp isfinite(const UOp& x) { return ops::logical_not(bitwise_or(isinf(x), isnan(x))); }

UOp isclose(const UOp& a, const Operand& b, const CloseOptions& options, const OpsContext& ctx) {
  const auto [x, y] = broadcast_operands(a, b, ctx);
  const Expr bound = Expr(abs(y)) * options.rtol + options.atol;
  const Expr near = Expr(isfinite(x)) & isfinite(y) & le(abs(sub(x, y)), bound);
  const Expr same = near | ops::eq(x, y);
  return options.equal_nan ? same | (Expr(isnan(x)) & isnan(y)) : same;
}

UOp logical_not(const UOp& x) { return ops::ne(tinygrad::cast(x, DType::bool_), true); }

UOp bitwise_not(const UOp& x) {
  if (is_bool(x.dtype())) return ops::logical_not(x);
  if (is_float(x.dtype())) throw DTypeError(fmt::format("bitwise_not: got {}, expects integers or bool", repr(x.dtype())));
  return bitwise_xor(x, constant(Scalar::of(int64_t{-1}, x.dtype())));
}

UOp bitwise_and(const Operand& a, const Operand& b, const OpsContext& ctx) { return bits("bitwise_and", Op::AND, a, b, ctx); }
UOp bitwise_or(const Operand& a, const Operand& b, const OpsContext& ctx) { return bits("bitwise_or", Op::OR, a, b, ctx); }
UOp bitwise_xor(const Operand& a, const Operand& b, const OpsContext& ctx) { return bits("bitwise_xor", Op::XOR, a, b, ctx); }
UOp lshift(const Operand& a, const Operand& b, const OpsContext& ctx) { return shift("lshift", Op::SHL, a, b, ctx); }
UOp rshift(const Operand& a, const Operand& b, const OpsContext& ctx) { return shift("rshift", Op::SHR, a, b, ctx); }

namespace {

DType unsigned_of(size_t bytes) {
  return bytes == 1 ? DType::uint8 : bytes == 2 ? DType::uint16 : bytes == 4 ? DType::uint32 : DType::uint64;
}

/// Each unsigned element as `parts` narrower ones, low first.
UOp split_bits(const UOp& x, size_t parts, DType narrow) {
  const UOp wide = ops::unsqueeze(x, -1);
  const UOp amount = mul(iota_along(-1, rank_of(wide), int64_t(parts), DType::int32), bitsize(narrow));
  const UOp shifted = rshift(wide, tinygrad::cast(amount, x.dtype()));
  return ops::flatten(tinygrad::cast(shifted, narrow), -2, -1);
}

/// Runs of unsigned elements of the last axis as one wider element each, low first.
UOp join_bits(const UOp& x, size_t parts, DType wide) {
  const UOp runs = tinygrad::cast(ops::unflatten(x, -1, Shape{-1, SInt(parts)}), wide);
  const UOp amount = mul(iota_along(-1, rank_of(runs), int64_t(parts), DType::int32), bitsize(x.dtype()));
  return sum(lshift(runs, tinygrad::cast(amount, wide)), -1, false, wide);
}

}  // namespace

UOp bitcast(const UOp& x, DType dtype) {
  if (dtype == DType::void_ || dtype == DType::index)
    throw DTypeError(fmt::format("bitcast: {} is no dtype of data, expects one such as dtypes.int32", repr(dtype)));
  const size_t from = itemsize(x.dtype()), to = itemsize(dtype);
  if (from == to) return tinygrad::bitcast(x, dtype);
  const Shape& shape = shape_of(x);
  if (shape.empty() || (to > from && !(floor_mod(shape.back() * SInt(from), SInt(to)) == 0)))
    throw ShapeError(
        fmt::format("bitcast: the last axis of {} {} is not a whole number of {}", to_string(shape), repr(x.dtype()), repr(dtype)));
  const UOp raw = tinygrad::bitcast(x, unsigned_of(from));
  return tinygrad::bitcast(to < from ? split_bits(raw, from / to, unsigned_of(to)) : join_bits(raw, to / from, unsigned_of(to)), dtype);
}

UOp saturated(const UOp& x, DType dtype) {
  if (!is_fp8(dtype)) return x;
  const double most = greatest_finite(dtype);
  return clamp(tinygrad::cast(x, least_upper_dtype(x.dtype(), DType::float32)), -most, most);
}

UOp threefry(const UOp& counter, const UOp& key) {
  if (counter.dtype() != DType::uint64 || key.dtype() != DType::uint64)
    throw DTypeError(
        fmt::format("threefry: the counter is {}, the key {}; expects dtypes.uint64", repr(counter.dtype()), repr(key.dtype())));
  return binary(Op::THREEFRY, counter, key, {});
}

UOp detach(const UOp& x) { return UOp(Op::DETACH, x.dtype(), {x}); }

UOp contiguous(const UOp& x) {
  if (x.is(Op::CONTIGUOUS) || x.is(Op::BUFFER) || x.is(Op::COPY)) return x;
  return UOp(Op::CONTIGUOUS, x.dtype(), {x});
}

UOp contiguous_backward(const UOp& x) { return UOp(Op::CONTIGUOUS_BACKWARD, x.dtype(), {x}); }

UOp copy_to(const UOp& x, Symbol device) { return devices_of(x) == Devices(device) ? x : UOp(Op::COPY, x.dtype(), {x}, DeviceArg{device}); }

}  // namespace tinygrad::ops
