#include "symbolic/build.h"

#include <utility>

#include "symbolic/bounds.h"

namespace tinygrad::symbolic {

namespace {

/// The number of an index CONST or a bool one.
std::optional<int64_t> number(const UOp& u) {
  if (!u.is(Op::CONST)) return std::nullopt;
  return u.arg_as<ConstArg>().value.as_int();
}

/// Splits off a constant second operand of `op`.
std::pair<UOp, std::optional<int64_t>> split(Op op, const UOp& u) {
  if (u.is(op))
    if (auto c = number(u.src(1))) return {u.src(0), c};
  return {u, std::nullopt};
}

}  // namespace

UOp sym_add(const UOp& a, const UOp& b) {
  const auto ca = number(a), cb = number(b);
  if (ca && !cb) return sym_add(b, a);
  int64_t sum = 0;
  if (!cb) {
    const auto [x, k] = split(Op::ADD, a);  // constants stay outside
    const auto [y, l] = split(Op::ADD, b);
    if ((!k && !l) || __builtin_add_overflow(k.value_or(0), l.value_or(0), &sum)) return a + b;
    return sum == 0 ? x + y : (x + y) + sum;
  }
  if (*cb == 0) return a;
  if (ca) return __builtin_add_overflow(*ca, *cb, &sum) ? a + b : index_const(sum);
  const auto [x, k] = split(Op::ADD, a);
  if (!k || __builtin_add_overflow(*k, *cb, &sum)) return a + b;
  return sum == 0 ? x : x + sum;
}

UOp sym_mul(const UOp& a, const UOp& b) {
  const auto ca = number(a), cb = number(b);
  if (!cb) return ca ? sym_mul(b, a) : a * b;
  int64_t product = 0;
  if (*cb == 0 && a->scalar) return b;
  if (*cb == 1) return a;
  if (ca) return __builtin_mul_overflow(*ca, *cb, &product) ? a * b : index_const(product);
  const auto [x, k] = split(Op::MUL, a);
  if (!k || __builtin_mul_overflow(*k, *cb, &product)) return a * b;
  return x * product;
}

UOp sym_sub(const UOp& a, const UOp& b) {
  if (a == b && a->scalar) return index_const(0);
  return sym_add(a, sym_mul(b, index_const(-1)));
}

UOp sym_div(const UOp& a, const UOp& b) {
  if (is_const(b, 1)) return a;
  const Bounds x = bounds(a), y = bounds(b);
  if (y.min > 0 && x.min >= 0 && x.max < y.min && a->scalar && b->scalar) return index_const(0);
  if (const auto n = x.single(), d = y.single(); n && d && *d > 0 && a->scalar && b->scalar) return index_const(*n / *d - (*n % *d < 0));
  return floor_div(a, b);
}

UOp sym_mod(const UOp& a, const UOp& b) {
  const Bounds x = bounds(a), y = bounds(b);
  if (is_const(b, 1) && a->scalar) return index_const(0);
  if (y.min > 0 && x.min >= 0 && x.max < y.min && b->scalar) return a;
  if (const auto n = x.single(), d = y.single(); n && d && *d > 0 && a->scalar && b->scalar)
    return index_const(*n % *d + (*n % *d < 0 ? *d : 0));
  return floor_mod(a, b);
}

UOp sym_max(const UOp& a, const UOp& b) {
  const Bounds x = bounds(a), y = bounds(b);
  if (a == b || (x.min >= y.max && b->scalar)) return a;
  if (y.min >= x.max && a->scalar) return b;
  return max(a, b);
}

UOp sym_min(const UOp& a, const UOp& b) {
  const Bounds x = bounds(a), y = bounds(b);
  if (a == b || (x.max <= y.min && b->scalar)) return a;
  if (y.max <= x.min && a->scalar) return b;
  return min(a, b);
}

UOp sym_lt(const UOp& a, const UOp& b) {
  const Bounds x = bounds(a), y = bounds(b);
  if (a->scalar && b->scalar) {
    if (x.max < y.min) return bool_const(true);
    if (x.min >= y.max || a == b) return bool_const(false);
  }
  return a < b;
}

UOp sym_ge(const UOp& a, const UOp& b) { return sym_not(sym_lt(a, b)); }

UOp sym_not(const UOp& a) {
  if (const auto c = number(a)) return bool_const(*c == 0);
  if (a.is(Op::CMPNE) && is_const(a.src(1), 1) && a.src(0).dtype() == DType::bool_) return a.src(0);
  return logical_not(a);
}

UOp sym_and(const UOp& a, const UOp& b) {
  if (a == b) return a;
  if (const auto c = number(a); c && (*c || b->scalar)) return *c ? b : a;
  if (const auto c = number(b); c && (*c || a->scalar)) return *c ? a : b;
  return a & b;
}

UOp sym_or(const UOp& a, const UOp& b) {
  if (a == b) return a;
  if (const auto c = number(a); c && (!*c || b->scalar)) return *c ? a : b;
  if (const auto c = number(b); c && (!*c || a->scalar)) return *c ? b : a;
  return a | b;
}

UOp sym_where(const UOp& c, const UOp& a, const UOp& b) {
  if (a == b && c->scalar) return a;
  if (const auto k = number(c); k && (*k ? b : a)->scalar) return *k ? a : b;
  return where(c, a, b);
}

}  // namespace tinygrad::symbolic
