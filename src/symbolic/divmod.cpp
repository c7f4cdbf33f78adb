#include <numeric>

#include "base/quotient.h"
#include "symbolic/linear.h"
#include "symbolic/normal.h"
#include "uop/build.h"

// Division and remainder are those of floor: for c > 0, n = c*floor(n/c) + n mod c with 0 <= n mod c < c. With it, for all integers,
//   floor((c*A + R)/c) = A + floor(R/c)           (c*A + R) mod c = R mod c
//   floor((g*A + R)/(g*c)) = floor((A + q)/c)      (g*A + R) mod (g*c) = g*((A + q) mod c) + R - g*q      where q = floor(R/g)
// and both lose the division where the bounds of R show that floor(R/c) is one number.

namespace tinygrad::symbolic {

namespace {

/// floor(n/c) where the bounds show that it is one number.
std::optional<int64_t> constant_quotient(const Linear& n, int64_t c) {
  const Bounds b = n.bounds();
  if (!b.has_min() || !b.has_max()) return std::nullopt;
  const int64_t q = floor_quotient(b.min, c);
  if (q != floor_quotient(b.max, c)) return std::nullopt;
  return q;
}

/// n = c*quotient + rest, term by term.
struct Split {
  Linear quotient, rest;
};

enum class Remainders { signed_, positive, smallest };

/// Divides each coefficient by c, with remainders of the coefficient's sign, >= 0, or of least magnitude; that of the number is >= 0.
Split split_by(const Linear& n, int64_t c, Remainders kind) {
  Split out;
  for (const Term& t : n.terms) {
    int64_t r = t.factor % c;
    if (kind == Remainders::positive && r < 0) r += c;
    if (kind == Remainders::smallest && r > c / 2) r -= c;
    if (kind == Remainders::smallest && r < -(c / 2)) r += c;
    // |t.factor - r| may leave 64 bits only when r has the other sign, at the very end of the range.
    int64_t multiple = 0;
    if (__builtin_sub_overflow(t.factor, r, &multiple)) return {{}, n};
    if (multiple) out.quotient.terms.push_back({t.node, multiple / c});
    if (r) out.rest.terms.push_back({t.node, r});
  }
  out.quotient.offset = floor_quotient(n.offset, c);
  out.rest.offset = n.offset - out.quotient.offset * c;
  return out;
}

bool is_zero(const Linear& n) { return n.terms.empty() && n.offset == 0; }

/// The terms that are multiples of g, divided by it, plus floor(rest/g), if that is one number; and the rest minus g times that.
struct Grouped {
  Linear multiples, rest;
};

std::optional<Grouped> group_by(const Linear& n, int64_t g) {
  Grouped out;
  for (const Term& t : n.terms) {
    if (t.factor % g == 0)
      out.multiples.terms.push_back({t.node, t.factor / g});
    else
      out.rest.terms.push_back(t);
  }
  out.rest.offset = n.offset;
  const auto q = constant_quotient(out.rest, g);
  if (!q || out.multiples.terms.empty()) return std::nullopt;
  out.multiples.offset = *q;
  if (!out.rest.add(Linear{{}, *q}, -g)) return std::nullopt;
  return out;
}

/// The grouping by the largest divisor of c, below c, that some coefficient has in common with it.
std::optional<std::pair<int64_t, Grouped>> best_group(const Linear& n, int64_t c) {
  std::optional<std::pair<int64_t, Grouped>> best;
  for (const Term& t : n.terms) {
    const int64_t g = std::gcd(t.factor, c);
    if (g <= 1 || g >= c || (best && best->first >= g)) continue;
    if (auto grouped = group_by(n, g)) best = {g, std::move(*grouped)};
  }
  return best;
}

UOp plus(const Linear& a, const UOp& b, int64_t factor) {
  Linear sum = a;
  if (!sum.add_expression(b, factor)) return {};
  sum.drop_zeros();
  return sum.build();
}

/// The only term, if the sum is one term with coefficient 1.
UOp only_term(const Linear& n) { return n.terms.size() == 1 && n.terms[0].factor == 1 ? n.terms[0].node : UOp(); }

std::optional<int64_t> positive_const(const UOp& u) {
  if (!u.is(Op::CONST)) return std::nullopt;
  const int64_t v = const_value(u)->as_int();
  return v > 0 ? std::optional(v) : std::nullopt;
}

UOp div_nested(const Linear& n, int64_t c) {
  const UOp t = only_term(n);
  if (!t) return {};
  int64_t whole = 0;
  if (t.is(Op::FLOORDIV)) {  // (a//b + k)//c = (a + k*b)//(b*c)
    const auto b = positive_const(t.src(1));
    if (!b || __builtin_mul_overflow(*b, c, &whole)) return {};
    Linear numerator;
    if (!numerator.add_expression(t.src(0), 1) || !numerator.add(Linear{{}, n.offset}, *b)) return {};
    return floor_div(numerator.build(), whole);
  }
  if (t.is(Op::FLOORMOD) && n.offset == 0) {  // (a%(b*c))//c = (a//c)%b
    const auto b = positive_const(t.src(1));
    if (b && *b % c == 0) return floor_mod(floor_div(t.src(0), c), *b / c);
  }
  return {};
}

UOp divide(const Linear& n, int64_t c) {
  if (c == 1) return n.build();
  if (const auto q = constant_quotient(n, c)) return index_const(*q);
  const Split s = split_by(n, c, Remainders::signed_);
  if (!is_zero(s.quotient)) return plus(s.quotient, floor_div(s.rest.build(), c), 1);
  for (Remainders kind : {Remainders::positive, Remainders::smallest}) {
    Split v = split_by(n, c, kind);
    const auto q = constant_quotient(v.rest, c);
    if (q && v.quotient.add(Linear{{}, *q}, 1)) return v.quotient.build();
  }
  if (const auto g = best_group(n, c)) return floor_div(g->second.multiples.build(), c / g->first);
  int64_t common = c;
  for (const Term& t : n.terms) common = std::gcd(common, t.factor);
  if (common > 1) {
    Linear divided = n;
    for (Term& t : divided.terms) t.factor /= common;
    divided.offset = floor_quotient(n.offset, common);
    return floor_div(divided.build(), c / common);
  }
  return div_nested(n, c);
}

/// Inner remainders that the outer one repeats: (k*(a%b) + R) % c = (k*a + R) % c where c divides k*b. Null if there are none.
std::optional<Linear> without_inner_mods(const Linear& n, int64_t c) {
  Linear out;
  out.offset = n.offset;
  bool changed = false;
  for (const Term& t : n.terms) {
    int64_t kb = 0;
    const auto b = t.node.is(Op::FLOORMOD) ? positive_const(t.node.src(1)) : std::nullopt;
    const bool repeated = b && !__builtin_mul_overflow(t.factor, *b, &kb) && kb % c == 0;
    changed |= repeated;
    if (!(repeated ? out.add_expression(t.node.src(0), t.factor) : out.add(t.node, t.factor))) return std::nullopt;
  }
  if (!changed) return std::nullopt;
  out.drop_zeros();
  return out;
}

UOp remainder(const Linear& n, int64_t c) {
  if (c == 1) return index_const(0);
  if (const auto inner = without_inner_mods(n, c)) return floor_mod(inner->build(), c);
  for (Remainders kind : {Remainders::signed_, Remainders::positive, Remainders::smallest}) {
    Split v = split_by(n, c, kind);
    const auto q = constant_quotient(v.rest, c);
    int64_t back = 0;
    if (q && !__builtin_mul_overflow(*q, -c, &back) && v.rest.add(Linear{{}, back}, 1)) return v.rest.build();
  }
  const Split s = split_by(n, c, Remainders::signed_);
  if (!is_zero(s.quotient)) return floor_mod(s.rest.build(), c);
  if (const auto g = best_group(n, c)) return plus(g->second.rest, floor_mod(g->second.multiples.build(), c / g->first), g->first);
  int64_t common = c;
  for (const Term& t : n.terms) common = std::gcd(common, t.factor);
  if (common > 1) {
    Linear divided = n;
    for (Term& t : divided.terms) t.factor /= common;
    divided.offset = floor_quotient(n.offset, common);
    return plus(Linear{{}, n.offset - divided.offset * common}, floor_mod(divided.build(), c / common), common);
  }
  return {};
}

/// A product without one of its factors: what is left of x*n*y after division by n; null if n is not a factor.
UOp cofactor(const UOp& product, const UOp& n) {
  if (product == n) return index_const(1);
  SmallVector<UOp, 4> factors;
  UOp rest = product;
  for (; rest.is(Op::MUL); rest = rest.src(0)) factors.push_back(rest.src(1));
  factors.push_back(rest);
  UOp out;
  bool found = false;
  for (size_t i = factors.size(); i-- > 0;) {
    if (!found && factors[i] == n)
      found = true;
    else
      out = out ? out * factors[i] : factors[i];
  }
  return found ? out : UOp();
}

/// Numerator n by a symbolic divisor d > 0: the terms that have d as a factor, without it, and the rest.
Split split_by(const Linear& n, const UOp& d) {
  Split out;
  for (const Term& t : n.terms) {
    if (const UOp other = cofactor(t.node, d)) {
      if (out.quotient.add_expression(other, t.factor)) continue;
      return {{}, n};
    }
    out.rest.terms.push_back(t);
  }
  out.rest.offset = n.offset;
  return out;
}

/// Whether 0 <= n < d is known.
bool below(const Linear& n, const UOp& d) {
  if (const UOp t = only_term(n); t && n.offset == 0 && (t.is(Op::RANGE) || t.is(Op::SPECIAL)) && t.src(0) == d) return true;
  const Bounds b = n.bounds();
  return b.min >= 0 && b.max < bounds(d).min;
}

}  // namespace

UOp normal_div(const UOp& u) {
  const auto n = linear(u.src(0));
  const UOp& d = u.src(1);
  if (!n) return {};
  if (d.is(Op::CONST)) {
    const int64_t c = const_value(d)->as_int();
    if (c > 0) return divide(*n, c);
    if (c == 0) return index_const(0);
    Linear negated;  // a//-c = (-a)//c
    if (c == std::numeric_limits<int64_t>::min() || !negated.add(*n, -1)) return {};
    return floor_div(negated.build(), -c);
  }
  if (bounds(d).min <= 0) return {};
  const Split s = split_by(*n, d);
  if (below(s.rest, d)) return s.quotient.build();
  if (!is_zero(s.quotient)) return plus(s.quotient, floor_div(s.rest.build(), d), 1);
  return {};
}

UOp normal_mod(const UOp& u) {
  const auto n = linear(u.src(0));
  const UOp& d = u.src(1);
  if (!n) return {};
  if (d.is(Op::CONST)) {
    const int64_t c = const_value(d)->as_int();
    if (c > 0) return remainder(*n, c);
    if (c == 0) return index_const(0);
    Linear negated;  // a%-c = -((-a)%c)
    if (c == std::numeric_limits<int64_t>::min() || !negated.add(*n, -1)) return {};
    return floor_mod(negated.build(), -c) * -1;
  }
  if (bounds(d).min <= 0) return {};
  const Split s = split_by(*n, d);
  if (below(s.rest, d)) return s.rest.build();
  if (!is_zero(s.quotient)) return floor_mod(s.rest.build(), d);
  return {};
}

}  // namespace tinygrad::symbolic
