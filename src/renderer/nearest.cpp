#include "renderer/nearest.h"

#include <algorithm>
#include <limits>

#include "uop/build.h"

namespace tinygrad::renderer {
namespace {

const UOp& scalar_of(const UOp& u) { return u.is(Op::EXPAND) ? scalar_of(u.src(0)) : u; }

const Scalar* constant_of(const UOp& u) {
  const Scalar* c = const_value(scalar_of(u));
  return c && is_float(c->dtype()) ? c : nullptr;
}
bool is(const UOp& u, double value) {
  const Scalar* c = constant_of(u);
  return c && c->as_double() == value;
}

/// True if the op's sources are such, in either order.
template <class First, class Second>
bool has(const UOp& u, Op op, First first, Second second) {
  if (!u.is(op)) return false;
  return (first(u.src(0)) && second(u.src(1))) || (first(u.src(1)) && second(u.src(0)));
}

auto equals(const UOp& other) {
  return [&other](const UOp& u) { return u == other; };
}
auto equals(double value) {
  return [value](const UOp& u) { return is(u, value); };
}

bool is_difference(const UOp& u, const UOp& x, const UOp& whole) { return u.is(Op::SUB) && u.src(0) == x && u.src(1) == whole; }

/// |x - whole|
bool is_distance(const UOp& u, const UOp& x, const UOp& whole) {
  const auto is_negative = [&](const UOp& v) { return v.is(Op::NEG) && is_difference(v.src(0), x, whole); };
  return has(u, Op::MAX, [&](const UOp& v) { return is_difference(v, x, whole); }, is_negative);
}

bool is_odd(const UOp& u, const UOp& whole) {
  const auto is_half = [&](const UOp& v) { return has(v, Op::MUL, equals(whole), equals(0.5)); };
  return u.is(Op::CMPNE) && has(u, Op::CMPNE, is_half, [&](const UOp& v) { return v.is(Op::TRUNC) && is_half(v.src(0)); });
}

/// Whether x lies more than a half from `whole`, or a half where that is odd.
bool is_away(const UOp& u, const UOp& x, const UOp& whole) {
  const auto is_far = [&](const UOp& v) { return v.is(Op::CMPLT) && is(v.src(0), 0.5) && is_distance(v.src(1), x, whole); };
  const auto is_between = [&](const UOp& v) {
    return has(v, Op::CMPEQ, [&](const UOp& d) { return is_distance(d, x, whole); }, equals(0.5));
  };
  const auto is_tie = [&](const UOp& v) { return has(v, Op::AND, is_between, [&](const UOp& odd) { return is_odd(odd, whole); }); };
  return has(u, Op::OR, is_far, is_tie);
}

/// -1 or 1, as x has its sign.
bool is_one_with_sign(const UOp& u, const UOp& x) {
  if (!u.is(Op::WHERE) || !is(u.src(1), -1) || !is(u.src(2), 1)) return false;
  return u.src(0).is(Op::CMPLT) && u.src(0).src(0) == x && is(u.src(0).src(1), 0);
}

struct FloatBounds {
  double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
};

/// A comparison with NaN is false, so the smaller or greater of a number and NaN may be either.
FloatBounds bounds_of(const UOp& u) {
  if (u.is(Op::TRUNC)) return bounds_of(u.src(0));
  const UOp *a = nullptr, *b = nullptr;
  bool is_smaller = false;
  if (u.is(Op::MAX)) {
    a = &u.src(0), b = &u.src(1);
  } else if (u.is(Op::WHERE) && u.src(0).is(Op::CMPLT)) {
    a = &u.src(0).src(0), b = &u.src(0).src(1);
    is_smaller = u.src(1) == *a && u.src(2) == *b;
    if (!is_smaller && !(u.src(1) == *b && u.src(2) == *a)) return {};
  } else {
    return {};
  }
  const Scalar *first = constant_of(*a), *c = first ? first : constant_of(*b);
  if (!c || c->as_double() != c->as_double()) return {};
  const double limit = c->as_double();
  const FloatBounds other = bounds_of(first ? *b : *a);
  return is_smaller ? FloatBounds{std::min(other.min, limit), limit} : FloatBounds{limit, std::max(other.max, limit)};
}

}  // namespace

UOp rounded_to_nearest(const UOp& u) {
  if (!u.is(Op::WHERE) || !u.src(2).is(Op::TRUNC) || !is_float(u.dtype())) return {};
  const UOp &whole = u.src(2), &x = whole.src(0);
  const bool steps = has(u.src(1), Op::ADD, equals(whole), [&](const UOp& v) { return is_one_with_sign(v, x); });
  return steps && is_away(u.src(0), x, whole) ? x : UOp();
}

bool is_small(const UOp& u) {
  const FloatBounds b = bounds_of(u);
  return b.min >= -0x1p31 && b.max < 0x1p31;
}

}  // namespace tinygrad::renderer
