#include "engine/fuzz/random_values.h"

#include <algorithm>
#include <cmath>

#include "dtype/scalar.h"
#include "ops/creation.h"
#include "ops/elementwise.h"
#include "ops/movement.h"
#include "uop/build.h"

namespace tinygrad::test {

namespace {

/// The largest magnitude that a program lets a float have: far from overflow.
double float_limit(DType d) {
  return std::min(max_value(d).is_inf() ? std::ldexp(1.0, (1 << (finfo(d).exponent_bits - 1)) - 3) : 112.0, 0x1p40);
}
int precision(DType d) { return finfo(d).mantissa_bits + 1; }
/// The finest fraction that has full precision near 1.
int finest_fraction(DType d) { return (1 << (finfo(d).exponent_bits - 1)) - 2 + finfo(d).mantissa_bits; }

bool holds(DType d, double bound) {
  if (is_bool(d)) return bound <= 1;
  return bound <= std::ldexp(1.0, bitsize(d) - (is_signed(d) ? 1 : 0)) - 1;
}

}  // namespace

std::optional<Value> made(UOp u, bool exact, double bound, int fraction, bool may_be_negative) {
  const DType d = u.dtype();
  if (!is_float(d)) {
    const bool fits = holds(d, bound) && !(is_unsigned(d) && may_be_negative);
    return Value{std::move(u), true, fits ? bound : is_bool(d) ? 1 : any_integer, 0};
  }
  if (!(bound <= float_limit(d))) return {};
  exact = exact && std::ldexp(bound, fraction) <= std::ldexp(1.0, precision(d)) && fraction <= finest_fraction(d);
  return Value{std::move(u), exact, bound, exact ? fraction : 0};
}

Value view(const Value& of, UOp u) { return {std::move(u), of.exact, of.bound, of.fraction}; }

DType random_float(Dice& dice) {
  return dice.pick({DType::float32, DType::float32, DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::fp8e4m3,
                    DType::fp8e5m2, DType::fp8e4m3fnuz, DType::fp8e5m2fnuz});
}

DType random_dtype(Dice& dice) {
  if (dice.chance(50)) return random_float(dice);
  return dice.pick({DType::bool_, DType::int8, DType::uint8, DType::int16, DType::uint16, DType::int32, DType::int32, DType::uint32,
                    DType::int64, DType::uint64});
}

Shape random_shape(Dice& dice, int64_t most) {
  Shape shape;
  for (int64_t rank = dice.pick({0, 1, 1, 2, 2, 2, 3, 3, 4}); rank > 0 && most > 1; --rank) {
    const int64_t n = std::min(dice.pick({1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 32, 40}), int(most));
    shape.push_back(n);
    most /= n;
  }
  return shape;
}

const Value& RandomValues::pick() {
  const int64_t last = int64_t(pool_.size()) - 1;
  return pool_[size_t(std::max(dice_.number(0, last), dice_.number(0, last)))];
}

void RandomValues::grow() {
  for (int tries = 0; tries < 20; ++tries) {
    const Maybe v = random_op();
    if (!v || numel(v->shape()).max() > 4096) continue;
    pool_.push_back(*v);
    return;
  }
}

std::optional<Value> RandomValues::random_op() {
  const Value x = !sizes_.empty() && dice_.chance(45) ? symbolic_cut(pick()) : pick();
  switch (dice_.number(0, 19)) {
    case 0:
    case 1:
    case 2: return unary(x);
    case 3:
    case 4:
    case 5:
    case 6: return binary(x, dice_.chance(25) ? constant_like(x) : fit(pick(), x.shape()));
    case 7: return comparison(x, dice_.chance(30) ? constant_like(x) : fit(pick(), x.shape()));
    case 8: return choice(x, dice_.chance(20) ? constant_like(x) : fit(pick(), x.shape()));
    case 9: return convert(x, random_dtype(dice_));
    case 10:
    case 11:
    case 12: return movement(x);
    case 13: return join(x, pick());
    case 14:
    case 15:
    case 16: return reduction(x);
    case 17: return diamond(x);
    case 18: return product(x, pick());
    default: return indexed(x);
  }
}

Value RandomValues::constant_like(const Value& x) {
  if (is_bool(x.dtype())) return {bool_const(dice_.chance(50)), true, 1, 0};
  const int64_t most = x.is_float() && is_fp8(x.dtype()) ? 4 : 20;
  const int64_t n = is_unsigned(x.dtype()) ? dice_.number(0, most) : dice_.number(-most, most);
  return {constant(x.dtype(), n), true, double(std::abs(n)), 0};
}

Value RandomValues::fit(const Value& v, const Shape& shape) {
  UOp u = v.u;
  if (rank_of(u) > 0 && shape.empty()) u = ops::flatten(u);
  while (rank_of(u) > std::max<size_t>(shape.size(), 1)) u = ops::flatten(u, 0, 1);
  while (rank_of(u) < shape.size()) u = ops::unsqueeze(u, 0);
  if (shape.empty()) return view(v, rank_of(u) == 0 ? u : ops::reshape(ops::shrink_axis(u, 0, 0, 1), shape));
  for (size_t i = 0; i < shape.size(); ++i) {
    const SInt have = shape_of(u)[i], want = shape[i];
    if (have == want || have == 1) continue;
    if (want.max() <= have.min()) {
      const SInt begin = dice_.chance(50) ? 0 : dice_.number(0, have.min() - want.max());
      u = ops::shrink_axis(u, int(i), begin, begin + want);
    } else if (want.known() && have.max() <= want.value()) {
      u = ops::pad_axis(u, int(i), 0, want - have);
    } else {
      u = ops::shrink_axis(u, int(i), 0, 1);
    }
  }
  return view(v, ops::broadcast_to(u, shape));
}

std::optional<Value> RandomValues::convert(const Value& v, DType d) {
  const DType from = v.dtype();
  if (from == d) return v;
  if (v.is_float() && !is_float(d) && !v.exact) return {};
  const UOp u = tinygrad::cast(v.u, d);
  if (is_bool(d)) return made(u, true, 1);
  if (is_float(d)) return v.bound > 0x1p32 ? Maybe() : made(u, v.exact, v.bound, v.fraction);
  return made(u, true, v.is_float() ? any_integer : v.bound, 0, !is_unsigned(from) && !is_bool(from));
}

Value RandomValues::symbolic_cut(const Value& x) {
  const SInt n(dice_.pick(sizes_));
  for (size_t i = 0; i < x.shape().size(); ++i) {
    const SInt have = x.shape()[i];
    if (!have.known() || have.value() < n.max()) continue;
    const int64_t room = have.value() - n.max();
    const int64_t kind = room == 0 ? 0 : dice_.number(0, 2);
    if (kind == 0) return view(x, ops::shrink_axis(x.u, int(i), 0, n));
    return view(x, ops::shrink_axis(x.u, int(i), n, kind == 1 ? have : n + dice_.number(1, room)));
  }
  return x;
}

std::optional<Value> RandomValues::unary(const Value& x) {
  if (is_bool(x.dtype())) return made(ops::logical_not(x.u), true, 1);
  switch (dice_.number(0, 7)) {
    case 0: return made(ops::neg(x.u), x.exact, x.bound, x.fraction);
    case 1: return made(ops::abs(x.u), x.exact, x.bound, x.fraction, is_signed(x.dtype()));
    case 2: return made(max(x.u, constant(x.dtype(), 0)), x.exact, x.bound, x.fraction, false);
    case 3: return made(ops::square(x.u), x.exact, x.bound * x.bound, 2 * x.fraction, false);
    case 4: return x.exact ? exact_unary(x) : function(x);
    case 5: return view(x, dice_.chance(50) ? ops::contiguous(x.u) : ops::detach(x.u));
    default: return function(x);
  }
}

std::optional<Value> RandomValues::exact_unary(const Value& x) {
  if (!x.is_float()) {
    if (dice_.chance(50)) return made(ops::bitwise_not(x.u), true, any_integer);
    const DType d = x.dtype();
    const DType twin = bitsize(d) == 8    ? (is_signed(d) ? DType::uint8 : DType::int8)
                       : bitsize(d) == 16 ? (is_signed(d) ? DType::uint16 : DType::int16)
                       : bitsize(d) == 32 ? (is_signed(d) ? DType::uint32 : DType::int32)
                                          : (is_signed(d) ? DType::uint64 : DType::int64);
    return made(tinygrad::bitcast(x.u, twin), true, any_integer);
  }
  switch (dice_.number(0, 4)) {
    case 0: return made(ops::floor(x.u), true, std::ceil(x.bound));
    case 1: return made(ops::ceil(x.u), true, std::ceil(x.bound));
    case 2: return made(ops::round(x.u), true, std::ceil(x.bound));
    case 3: return made(ops::trunc(x.u), true, x.bound);
    default: return made(ops::sign(x.u), true, 1);
  }
}

std::optional<Value> RandomValues::function(const Value& given) {
  // Ops that work on floats take small integers too; each argument is kept where the function is well conditioned.
  if (!given.is_float() && given.bound > 0x1p20) return {};
  const UOp& x = given.u;
  const double b = given.bound;
  const UOp small = b <= 6 ? x : ops::clamp(x, -6, 4);
  switch (dice_.number(0, 8)) {
    case 0: return made(ops::sin(x), false, 1);
    case 1: return made(ops::exp2(small), false, 64);
    case 2: return made(ops::exp(small), false, 404);
    case 3: return made(ops::log2(ops::add(ops::abs(x), 0.5)), false, std::log2(b + 0.5) + 2);
    case 4: return made(ops::sqrt(ops::add(ops::abs(x), 0.5)), false, std::sqrt(b + 1));
    case 5: return made(ops::reciprocal(ops::add(ops::abs(x), 1)), false, 1);
    case 6: return made(ops::tanh(small), false, 1.1);
    case 7: return made(ops::div(x, 3), false, b);
    default: return made(ops::rsqrt(ops::add(ops::square(small), 1)), false, 1);
  }
}

std::optional<Value> RandomValues::binary(const Value& a, const Value& b) {
  const DType d = least_upper_dtype(a.dtype(), b.dtype());
  if (is_bool(d) || (is_int(d) && dice_.chance(60))) return integer_binary(a, b);
  const Maybe x = convert(a, d), y = convert(b, d);
  if (!x || !y) return {};
  const bool exact = x->exact && y->exact;
  const int fraction = std::max(x->fraction, y->fraction);
  switch (dice_.number(0, 6)) {
    case 0:
    case 1: return made(ops::add(a.u, b.u), exact, x->bound + y->bound, fraction, is_signed(d));
    case 2: return made(ops::sub(a.u, b.u), exact, x->bound + y->bound, fraction);
    case 3: return made(ops::mul(a.u, b.u), exact, x->bound * y->bound, x->fraction + y->fraction, is_signed(d));
    case 4: return made(ops::maximum(a.u, b.u), exact, std::max(x->bound, y->bound), fraction, is_signed(d));
    case 5: return made(ops::minimum(a.u, b.u), exact, std::max(x->bound, y->bound), fraction, is_signed(d));
    default:
      if (is_int(d)) return made(ops::mul(a.u, b.u), true, any_integer);
      return made(ops::div(a.u, ops::add(ops::abs(b.u), 1)), false, x->bound);
  }
}

std::optional<Value> RandomValues::integer_binary(const Value& a, const Value& b) {
  const bool bools = is_bool(a.dtype()) && is_bool(b.dtype());
  const UOp &x = a.u, &y = b.u;
  switch (dice_.number(0, bools ? 4 : 11)) {
    case 0: return made(ops::bitwise_and(x, y), true, any_integer);
    case 1: return made(ops::bitwise_or(x, y), true, any_integer);
    case 2: return made(ops::bitwise_xor(x, y), true, any_integer);
    case 3: return made(ops::maximum(x, y), true, any_integer);
    case 4: return made(ops::mul(x, y), true, any_integer);
    case 5: return made(ops::lshift(x, y), true, any_integer);
    case 6: return made(ops::rshift(x, y), true, any_integer);
    case 7: return made(ops::lshift(x, ops::bitwise_and(cast(y, least_upper_dtype(x.dtype(), y.dtype())), 7)), true, any_integer);
    case 8: return made(ops::div(x, y, Rounding::floor), true, any_integer);
    case 9: return made(ops::div(x, y, Rounding::trunc), true, any_integer);
    case 10: return made(ops::mod(x, y), true, b.bound);
    default: return made(ops::fmod(x, y), true, b.bound);
  }
}

std::optional<Value> RandomValues::comparison(const Value& a, const Value& b) {
  const DType d = least_upper_dtype(a.dtype(), b.dtype());
  const Maybe x = convert(a, d), y = convert(b, d);
  if (!x || !y || !x->exact || !y->exact) return {};
  switch (dice_.number(0, 5)) {
    case 0: return made(ops::lt(a.u, b.u), true, 1);
    case 1: return made(ops::le(a.u, b.u), true, 1);
    case 2: return made(ops::gt(a.u, b.u), true, 1);
    case 3: return made(ops::ge(a.u, b.u), true, 1);
    case 4: return made(ops::eq(a.u, b.u), true, 1);
    default: return made(ops::ne(a.u, b.u), true, 1);
  }
}

std::optional<Value> RandomValues::choice(const Value& a, const Value& b) {
  std::vector<Value> conditions;
  for (const Value& v : pool_)
    if (is_bool(v.dtype())) conditions.push_back(v);
  Maybe c = conditions.empty() ? comparison(pick(), constant_like(a)) : dice_.pick(conditions);
  if (!c && !a.shape().empty()) {  // by position
    const SInt n = a.shape().back();
    c = Value{ops::lt(ops::iota(n), dice_.number(0, n.max())), true, 1, 0};
  }
  const DType d = least_upper_dtype(a.dtype(), b.dtype());
  const Maybe x = convert(a, d), y = convert(b, d);
  if (!c || !x || !y) return {};
  const UOp u = ops::where(fit(*c, a.shape()).u, a.u, b.u);
  return made(u, x->exact && y->exact, std::max(x->bound, y->bound), std::max(x->fraction, y->fraction), is_signed(d));
}

}  // namespace tinygrad::test
