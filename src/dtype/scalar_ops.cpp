#include "dtype/scalar_ops.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/core.h>

#include <tinygrad/errors.h>

namespace tinygrad::scalar {

namespace {

[[noreturn]] void refuse(std::string_view op, std::string_view expects, const Scalar& a) {
  throw DTypeError(fmt::format("{}: got {}, expects {}; cast first", op, repr(a.dtype()), expects));
}

void need_float(std::string_view op, const Scalar& a) {
  if (!is_float(a.dtype())) refuse(op, "a floating-point dtype", a);
}

void need_int(std::string_view op, const Scalar& a) {
  if (!is_int(a.dtype())) refuse(op, "an integer dtype", a);
}

void need_same(std::string_view op, const Scalar& a, const Scalar& b) {
  if (a.dtype() == b.dtype()) return;
  throw DTypeError(
      fmt::format("{}: got {} and {}, expects operands of one dtype; cast one to the other", op, repr(a.dtype()), repr(b.dtype())));
}

[[noreturn]] void index_overflow(std::string_view op, const Scalar& a, const Scalar& b) {
  throw InternalError(fmt::format("{}: index overflow: the result for {} and {} does not fit 64 bits", op, a.to_string(), b.to_string()));
}

double value_of(const Scalar& a) { return std::bit_cast<double>(a.bits()); }

// Runs `f` on the values in the type that arithmetic on their dtype is done in.
template <class F, class... Args>
Scalar compute_float(F f, const Scalar& a, const Args&... rest) {
  if (a.dtype() == DType::float64) return Scalar::from_double(f(value_of(a), value_of(rest)...), a.dtype());
  return Scalar::from_double(static_cast<double>(f(static_cast<float>(value_of(a)), static_cast<float>(value_of(rest))...)), a.dtype());
}

// The same as compute_float(), in double for every dtype.
template <class F, class... Args>
Scalar compute_double(F f, const Scalar& a, const Args&... rest) {
  return Scalar::from_double(f(value_of(a), value_of(rest)...), a.dtype());
}

Scalar wrapped(uint64_t bits, const Scalar& like) { return Scalar::from_uint(bits, like.dtype()); }

int64_t signed_bits(const Scalar& a) { return static_cast<int64_t>(a.bits()); }

// Sum, difference and product: `real` for floats, `modular` on 64 bits for integers, `checked` returns true on overflow of an int64.
template <class Real, class Modular, class Checked>
Scalar ring_op(std::string_view op, const Scalar& a, const Scalar& b, Real real, Modular modular, Checked checked) {
  need_same(op, a, b);
  if (is_float(a.dtype())) return compute_float(real, a, b);
  if (a.dtype() != DType::index) return wrapped(modular(a.bits(), b.bits()), a);
  int64_t result = 0;
  if (checked(signed_bits(a), signed_bits(b), &result)) index_overflow(op, a, b);
  return Scalar::from_int(result, DType::index);
}

// Quotient and remainder towards zero, with every case that traps or is undefined in C defined.
struct Division {
  Scalar quotient, remainder;
};

Division divide(std::string_view op, const Scalar& a, const Scalar& b) {
  need_same(op, a, b);
  need_int(op, a);
  if (b.is_zero()) return {wrapped(0, a), wrapped(0, a)};
  if (is_unsigned(a.dtype())) return {wrapped(a.bits() / b.bits(), a), wrapped(a.bits() % b.bits(), a)};
  if (signed_bits(b) == -1) {
    if (a.dtype() == DType::index && signed_bits(a) == std::numeric_limits<int64_t>::min()) index_overflow(op, a, b);
    return {wrapped(0 - a.bits(), a), wrapped(0, a)};
  }
  return {Scalar::from_int(signed_bits(a) / signed_bits(b), a.dtype()), Scalar::from_int(signed_bits(a) % signed_bits(b), a.dtype())};
}

bool is_negative(const Scalar& a) { return is_signed(a.dtype()) && signed_bits(a) < 0; }

template <class F>
Scalar bitwise(std::string_view op, const Scalar& a, const Scalar& b, F f) {
  need_same(op, a, b);
  if (is_float(a.dtype())) refuse(op, "an integer dtype or bool", a);
  return wrapped(f(a.bits(), b.bits()), a);
}

// Less, equal or not: `f` sees both values in a type that orders them as the dtype does.
template <class F>
Scalar compare(std::string_view op, const Scalar& a, const Scalar& b, F f) {
  need_same(op, a, b);
  bool result;
  if (is_float(a.dtype()))
    result = f(value_of(a), value_of(b));
  else if (is_signed(a.dtype()))
    result = f(signed_bits(a), signed_bits(b));
  else
    result = f(a.bits(), b.bits());
  return Scalar::from_bool(result);
}

Scalar integer_pow(const Scalar& a, const Scalar& b) {
  const Scalar one = Scalar::from_int(1, a.dtype());
  if (is_negative(b)) {
    // Only 1 and -1 have an integer inverse.
    if (a.is_one()) return a;
    if (is_negative(a) && signed_bits(a) == -1) return (b.bits() & 1) ? a : one;
    return wrapped(0, a);
  }
  Scalar result = one, power = a;
  for (uint64_t exponent = b.bits(); exponent != 0;) {
    if (exponent & 1) result = mul(result, power);
    exponent >>= 1;
    if (exponent != 0) power = mul(power, power);
  }
  return result;
}

}  // namespace

Scalar add(const Scalar& a, const Scalar& b) {
  return ring_op(
      "add", a, b, [](auto x, auto y) { return x + y; }, [](uint64_t x, uint64_t y) { return x + y; },
      [](int64_t x, int64_t y, int64_t* r) { return __builtin_add_overflow(x, y, r); });
}

Scalar sub(const Scalar& a, const Scalar& b) {
  return ring_op(
      "sub", a, b, [](auto x, auto y) { return x - y; }, [](uint64_t x, uint64_t y) { return x - y; },
      [](int64_t x, int64_t y, int64_t* r) { return __builtin_sub_overflow(x, y, r); });
}

Scalar mul(const Scalar& a, const Scalar& b) {
  return ring_op(
      "mul", a, b, [](auto x, auto y) { return x * y; }, [](uint64_t x, uint64_t y) { return x * y; },
      [](int64_t x, int64_t y, int64_t* r) { return __builtin_mul_overflow(x, y, r); });
}

Scalar mulacc(const Scalar& a, const Scalar& b, const Scalar& c) {
  need_same("mulacc", a, b);
  need_same("mulacc", a, c);
  if (is_float(a.dtype())) return compute_float([](auto x, auto y, auto z) { return std::fma(x, y, z); }, a, b, c);
  return add(mul(a, b), c);
}

Scalar neg(const Scalar& a) {
  if (is_float(a.dtype())) return compute_float([](auto x) { return -x; }, a);
  return sub(wrapped(0, a), a);
}

Scalar max(const Scalar& a, const Scalar& b) {
  need_same("max", a, b);
  if (a.is_nan() || b.is_nan()) return a.is_nan() ? a : b;
  if (a.is_zero() && b.is_zero()) return a.is_positive_zero() ? a : b;
  return cmplt(a, b).as_bool() ? b : a;
}

Scalar fdiv(const Scalar& a, const Scalar& b) {
  need_same("fdiv", a, b);
  need_float("fdiv", a);
  return compute_float([](auto x, auto y) { return x / y; }, a, b);
}

Scalar reciprocal(const Scalar& a) {
  need_float("reciprocal", a);
  return compute_float([](auto x) { return 1 / x; }, a);
}

Scalar sqrt(const Scalar& a) {
  need_float("sqrt", a);
  return compute_float([](auto x) { return std::sqrt(x); }, a);
}

Scalar exp2(const Scalar& a) {
  need_float("exp2", a);
  return compute_double([](double x) { return std::exp2(x); }, a);
}

Scalar log2(const Scalar& a) {
  need_float("log2", a);
  return compute_double([](double x) { return std::log2(x); }, a);
}

Scalar sin(const Scalar& a) {
  need_float("sin", a);
  return compute_double([](double x) { return std::sin(x); }, a);
}

Scalar ldexp(const Scalar& a, const Scalar& n) {
  need_same("ldexp", a, n);
  need_float("ldexp", a);
  return compute_double(ldexp_double, a, n);
}

Scalar trunc(const Scalar& a) {
  if (is_int(a.dtype())) return a;
  need_float("trunc", a);
  return compute_float([](auto x) { return std::trunc(x); }, a);
}

Scalar pow(const Scalar& a, const Scalar& b) {
  need_same("pow", a, b);
  if (is_float(a.dtype())) return compute_double([](double x, double y) { return std::pow(x, y); }, a, b);
  need_int("pow", a);
  return integer_pow(a, b);
}

Scalar cdiv(const Scalar& a, const Scalar& b) { return divide("cdiv", a, b).quotient; }
Scalar cmod(const Scalar& a, const Scalar& b) { return divide("cmod", a, b).remainder; }

Scalar floordiv(const Scalar& a, const Scalar& b) {
  const Division d = divide("floordiv", a, b);
  const bool round_down = !d.remainder.is_zero() && is_negative(a) != is_negative(b);
  return round_down ? wrapped(d.quotient.bits() - 1, a) : d.quotient;
}

Scalar floormod(const Scalar& a, const Scalar& b) {
  const Division d = divide("floormod", a, b);
  const bool round_down = !d.remainder.is_zero() && is_negative(a) != is_negative(b);
  return round_down ? wrapped(d.remainder.bits() + b.bits(), a) : d.remainder;
}

Scalar and_(const Scalar& a, const Scalar& b) {
  return bitwise("and", a, b, [](uint64_t x, uint64_t y) { return x & y; });
}
Scalar or_(const Scalar& a, const Scalar& b) {
  return bitwise("or", a, b, [](uint64_t x, uint64_t y) { return x | y; });
}
Scalar xor_(const Scalar& a, const Scalar& b) {
  return bitwise("xor", a, b, [](uint64_t x, uint64_t y) { return x ^ y; });
}

Scalar shl(const Scalar& a, const Scalar& amount) {
  need_int("shl", a);
  need_int("shl", amount);
  // A negative amount is a huge number of bits here.
  const bool all_out = amount.bits() >= static_cast<uint64_t>(bitsize(a.dtype()));
  const Scalar result = wrapped(all_out ? 0 : a.bits() << amount.bits(), a);
  if (a.dtype() == DType::index && !(shr(result, amount) == a)) index_overflow("shl", a, amount);
  return result;
}

Scalar shr(const Scalar& a, const Scalar& amount) {
  need_int("shr", a);
  need_int("shr", amount);
  const bool all_out = amount.bits() >= static_cast<uint64_t>(bitsize(a.dtype()));
  if (is_signed(a.dtype())) return Scalar::from_int(signed_bits(a) >> (all_out ? 63 : amount.bits()), a.dtype());
  return wrapped(all_out ? 0 : a.bits() >> amount.bits(), a);
}

Scalar cmplt(const Scalar& a, const Scalar& b) {
  return compare("cmplt", a, b, [](auto x, auto y) { return x < y; });
}
Scalar cmpne(const Scalar& a, const Scalar& b) {
  return compare("cmpne", a, b, [](auto x, auto y) { return x != y; });
}
Scalar cmpeq(const Scalar& a, const Scalar& b) {
  return compare("cmpeq", a, b, [](auto x, auto y) { return x == y; });
}

Scalar where(const Scalar& condition, const Scalar& a, const Scalar& b) {
  if (!is_bool(condition.dtype())) refuse("where", "a bool condition", condition);
  need_same("where", a, b);
  return condition.as_bool() ? a : b;
}

Scalar threefry(const Scalar& counter, const Scalar& key) {
  if (counter.dtype() != DType::uint64) refuse("threefry", "a uint64 counter", counter);
  if (key.dtype() != DType::uint64) refuse("threefry", "a uint64 key", key);
  return Scalar::from_uint(threefry2x32(counter.bits(), key.bits()), DType::uint64);
}

uint64_t threefry2x32(uint64_t counter, uint64_t key) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  const uint32_t schedule[3] = {key0, key1, key0 ^ key1 ^ 0x1bd11bdau};
  uint32_t x0 = static_cast<uint32_t>(counter) + key0, x1 = static_cast<uint32_t>(counter >> 32) + key1;
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : rotations[group % 2]) {
      x0 += x1;
      x1 = std::rotl(x1, rotation) ^ x0;
    }
    x0 += schedule[(group + 1) % 3];
    x1 += schedule[(group + 2) % 3] + group + 1;
  }
  return (static_cast<uint64_t>(x1) << 32) | x0;
}

}  // namespace tinygrad::scalar
