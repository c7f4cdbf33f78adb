#include <algorithm>

#include "symbolic/linear.h"
#include "symbolic/normal.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::symbolic {

namespace {

using Parts = SmallVector<UOp, 16>;

/// What decides on the shape of a value: the nodes below its elementwise ones that may have one. False if these are too many to look at.
bool add_shaped(const UOp& value, Parts& out) {
  constexpr int most_steps = 64;
  Parts stack{value};
  for (int steps = 0; !stack.empty(); ++steps) {
    const UOp u = stack.back();
    stack.pop_back();
    if (steps == most_steps) return false;
    if (u->scalar) continue;
    if (u.in(Group::elementwise))
      for (const UOp& s : u.src()) stack.push_back(s);
    else if (std::find(out.begin(), out.end(), u) == out.end())
      out.push_back(u);
  }
  return true;
}

}  // namespace

UOp same_shape(const UOp& before, UOp after) {
  if (!after || before->scalar || after == before) return after;
  Parts needed, there;
  if (!add_shaped(before, needed) || !add_shaped(after, there)) return {};
  const auto is_there = [&](const UOp& u) { return std::find(there.begin(), there.end(), u) != there.end(); };
  return std::all_of(needed.begin(), needed.end(), is_there) ? after : UOp();
}

namespace {

/// Whether `quotient` is FLOORDIV(a, c), or what normal_div makes of it when `a` is itself a quotient: ((z//b)+k)//c is (z+k*b)//(b*c).
bool is_quotient(const UOp& quotient, const UOp& a, const UOp& c) {
  if (!quotient.is(Op::FLOORDIV)) return false;
  if (quotient.src(0) == a && quotient.src(1) == c) return true;
  if (!c.is(Op::CONST) || !quotient.src(1).is(Op::CONST)) return false;
  const auto parts = linear(a);
  if (!parts || parts->terms.size() != 1 || parts->terms[0].factor != 1 || !parts->terms[0].node.is(Op::FLOORDIV)) return false;
  const UOp& inner = parts->terms[0].node;
  if (!inner.src(1).is(Op::CONST)) return false;
  const int64_t b = const_value(inner.src(1))->as_int();
  int64_t whole = 0;
  if (b <= 0 || __builtin_mul_overflow(b, const_value(c)->as_int(), &whole) || !is_const(quotient.src(1), whole)) return false;
  Linear numerator;
  return numerator.add_expression(inner.src(0), 1) && numerator.add(Linear{{}, parts->offset}, b) && numerator.build() == quotient.src(0);
}

/// Whether u = a//c + R; then a + c*R, which has the same remainder by c and the quotient u.
std::optional<Linear> numerator_of(const UOp& u, const UOp& a, int64_t c) {
  const auto parts = linear(u);
  if (!parts) return std::nullopt;
  Linear out;
  bool found = false;
  for (const Term& t : parts->terms) {
    if (!found && t.factor == 1 && is_quotient(t.node, a, index_const(c)))
      found = true;
    else if (!out.add(Linear{{t}, 0}, c))
      return std::nullopt;
  }
  if (!found || !out.add(Linear{{}, parts->offset}, c) || !out.add_expression(a, 1)) return std::nullopt;
  return out;
}

/// The expression that `remainder` (a%c) and `other`, where `other` counts c times as much, add up to; null if none.
UOp merged(const UOp& remainder, const UOp& other) {
  const UOp &a = remainder.src(0), &c = remainder.src(1);
  if (is_quotient(other, a, c)) return a;
  // a%c + (a//c + R)%d * c = (a + c*R)%(c*d)
  if (!other.is(Op::FLOORMOD) || !other.src(1).is(Op::CONST)) return {};
  const int64_t d = const_value(other.src(1))->as_int();
  int64_t whole = 0;
  if (d <= 0 || __builtin_mul_overflow(d, const_value(c)->as_int(), &whole)) return {};
  const auto numerator = numerator_of(other.src(0), a, const_value(c)->as_int());
  return numerator ? floor_mod(numerator->build(), whole) : UOp();
}

/// Joins one remainder with the matching quotient: a%c + (a//c)*c = a; whether it did. False in `fits` is an overflow.
bool merge_one(Linear& sum, bool& fits) {
  for (Term& r : sum.terms) {
    if (!r.node.is(Op::FLOORMOD)) continue;
    const UOp c = r.node.src(1);
    for (Term& q : sum.terms) {
      UOp whole;
      int64_t needed = 0;
      if (c.is(Op::CONST)) {
        const int64_t value = const_value(c)->as_int();
        if (value > 0 && !__builtin_mul_overflow(r.factor, value, &needed) && q.factor == needed) whole = merged(r.node, q.node);
      } else if (q.factor == r.factor && q.node.is(Op::MUL)) {
        // The quotient times a symbolic divisor is a product, sorted like every product.
        const UOp product = floor_div(r.node.src(0), c);
        if (const auto p = linear(product * c); p && p->terms.size() == 1 && p->terms[0].node == q.node && symbolic::bounds(c).min > 0)
          whole = r.node.src(0);
      }
      if (!whole) continue;
      const int64_t factor = r.factor;
      r.factor = q.factor = 0;
      fits = sum.add_expression(whole, factor);
      sum.drop_zeros();
      return true;
    }
  }
  return false;
}

}  // namespace

UOp normal_sum(const UOp& u) {
  auto sum = linear(u);
  if (!sum) return {};
  for (bool fits = true; merge_one(*sum, fits);)
    if (!fits) return {};
  return sum->is_written_as(u) ? u : sum->build();
}

}  // namespace tinygrad::symbolic
