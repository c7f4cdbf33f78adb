#include <algorithm>
#include <numeric>

#include "base/quotient.h"
#include "symbolic/linear.h"
#include "symbolic/normal.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::symbolic {

namespace {

int64_t common_factor(const Linear& n) {
  int64_t g = 0;
  for (const Term& t : n.terms) g = std::gcd(g, t.factor);
  return g;
}

/// Moves terms with negative coefficients to the other side: n = positive - negative. The number goes to neither.
struct Sides {
  Linear positive, negative;
};
std::optional<Sides> sides(const Linear& n) {
  Sides out;
  for (const Term& t : n.terms) {
    if (t.factor == std::numeric_limits<int64_t>::min()) return std::nullopt;
    if (t.factor > 0)
      out.positive.terms.push_back(t);
    else
      out.negative.terms.push_back({t.node, -t.factor});
  }
  return out;
}

/// g*A + R < limit is A < limit/g where g divides the limit and 0 <= R < g. Tries each coefficient as g; limit is updated.
bool drop_small_terms(Linear& n, int64_t& limit) {
  for (const Term& candidate : n.terms) {
    const int64_t g = candidate.factor < 0 ? -candidate.factor : candidate.factor;
    if (g <= 1 || limit % g != 0) continue;
    Linear multiples, rest;
    for (const Term& t : n.terms) {
      if (t.factor % g == 0)
        multiples.terms.push_back({t.node, t.factor / g});
      else
        rest.terms.push_back(t);
    }
    const Bounds b = rest.bounds();
    if (!b.has_min() || !b.has_max() || rest.terms.empty()) continue;
    const int64_t q = floor_quotient(b.min, g);
    if (q != floor_quotient(b.max, g) || __builtin_sub_overflow(limit / g, q, &limit)) continue;
    n = multiples;
    return true;
  }
  return false;
}

/// x//c < limit is x < limit*c, for c > 0.
bool multiply_out(Linear& n, int64_t& limit) {
  if (n.terms.size() != 1 || n.terms[0].factor != 1 || !n.terms[0].node.is(Op::FLOORDIV)) return false;
  const UOp t = n.terms[0].node;
  if (!t.src(1).is(Op::CONST)) return false;
  const int64_t c = const_value(t.src(1))->as_int();
  Linear x;
  int64_t scaled = 0;
  if (c <= 0 || __builtin_mul_overflow(limit, c, &scaled) || !x.add_expression(t.src(0), 1)) return false;
  if (__builtin_sub_overflow(scaled, x.offset, &limit)) return false;
  x.offset = 0;
  n = x;
  return true;
}

/// n < limit in normal form; n has no number.
UOp build_less(Linear n, int64_t limit) {
  for (;;) {
    const int64_t g = common_factor(n);
    if (g <= 0) return {};
    if (g > 1) {
      for (Term& t : n.terms) t.factor /= g;
      limit = ceil_quotient(limit, g);
    }
    if (!drop_small_terms(n, limit) && !multiply_out(n, limit)) break;
    n.drop_zeros();
    if (n.terms.empty()) return bool_const(0 < limit);
  }
  const auto s = sides(n);
  if (!s) return {};
  if (s->positive.terms.empty()) {  // -x < c is !(x < 1-c)
    int64_t flipped = 0;
    if (__builtin_sub_overflow(int64_t(1), limit, &flipped)) return {};
    const UOp less = build_less(s->negative, flipped);
    return less ? logical_not(less) : less;
  }
  Linear right = s->negative;
  right.offset = limit;
  return s->positive.build() < right.build();
}

}  // namespace

UOp normal_less(const UOp& u) {
  auto n = difference(u.src(0), u.src(1));
  if (!n) return {};
  const Bounds b = n->bounds();
  if (b.max < 0) return bool_const(true);
  if (b.min >= 0) return bool_const(false);
  int64_t limit = 0;
  if (n->terms.empty() || __builtin_sub_overflow(int64_t(0), n->offset, &limit)) return {};
  n->offset = 0;
  return build_less(*n, limit);
}

UOp normal_equal(const UOp& u) {
  auto n = difference(u.src(0), u.src(1));
  if (!n) return {};
  const bool when_equal = u.is(Op::CMPEQ);
  if (n->terms.empty()) return bool_const((n->offset == 0) == when_equal);
  if (!n->bounds().contains(0)) return bool_const(!when_equal);
  const int64_t g = common_factor(*n);
  if (g <= 0 || n->offset == std::numeric_limits<int64_t>::min()) return {};
  if (n->offset % g != 0) return bool_const(!when_equal);
  std::ranges::stable_sort(n->terms, [](const Term& a, const Term& b) { return compare(a.node, b.node) < 0; });
  const int64_t scale = n->terms[0].factor < 0 ? -g : g;  // the first term is to be on the left
  for (Term& t : n->terms) {
    if (t.factor == std::numeric_limits<int64_t>::min()) return {};
    t.factor /= scale;
  }
  auto s = sides(*n);
  if (!s) return {};
  s->negative.offset = -(n->offset / scale);
  return alu(u.op(), {s->positive.build(), s->negative.build()});
}

namespace {

bool is_not(const UOp& u) {
  return u.is(Op::CMPNE) && u.dtype() == DType::bool_ && u.src(0).dtype() == DType::bool_ && is_const(u.src(1), 1);
}

/// x < c with a constant c, for an integer x.
bool is_less_const(const UOp& u) { return u.is(Op::CMPLT) && u.src(1).is(Op::CONST) && is_int(u.src(0).dtype()); }

/// The operands of nested ANDs (or ORs), constants and repeats removed.
struct Operands {
  SmallVector<UOp, 8> list;
  bool decided = false;  ///< one is the absorbing constant, or there are x and !x
  bool fits = true;
};

Operands operands(const UOp& root) {
  const Op op = root.op();
  const bool neutral = op == Op::AND;
  Operands out;
  SmallVector<UOp, 16> stack{root};
  while (!stack.empty()) {
    const UOp u = stack.back();
    stack.pop_back();
    if (u.is(op)) {
      stack.push_back(u.src(1));
      stack.push_back(u.src(0));
    } else if (const Scalar* c = u.is(Op::CONST) ? const_value(u) : nullptr) {
      if (c->as_bool() != neutral) out.decided = true;
    } else if (std::ranges::find(out.list, u) == out.list.end()) {
      if (out.list.size() == 32) {
        out.fits = false;
        return out;
      }
      out.list.push_back(u);
    }
  }
  for (const UOp& u : out.list)
    if (is_not(u) && std::ranges::find(out.list, u.src(0)) != out.list.end()) out.decided = true;
  return out;
}

/// Keeps the tightest of several upper (or lower) limits on one x in an AND; false if they contradict each other.
bool keep_tightest(SmallVector<UOp, 8>& list) {
  auto limit = [](const UOp& less) { return const_value(less.src(1))->as_int(); };
  for (size_t i = 0; i < list.size(); ++i) {
    const bool lower = is_not(list[i]) && is_less_const(list[i].src(0));
    if (!lower && !is_less_const(list[i])) continue;
    const UOp a = lower ? list[i].src(0) : list[i];
    if (a.src(0).dtype() == DType::uint64) continue;
    for (size_t k = i + 1; k < list.size();) {
      const bool other_lower = is_not(list[k]) && is_less_const(list[k].src(0));
      const UOp b = other_lower ? list[k].src(0) : list[k];
      if (!is_less_const(b) || b.src(0) != a.src(0)) {
        ++k;
      } else if (lower != other_lower) {
        if (lower ? limit(a) >= limit(b) : limit(b) >= limit(a)) return false;
        ++k;
      } else {
        if (lower ? limit(b) > limit(a) : limit(b) < limit(a)) list[i] = list[k];
        list.erase(list.begin() + k);
        return keep_tightest(list);
      }
    }
  }
  return true;
}

}  // namespace

UOp normal_logic(const UOp& u) {
  const bool neutral = u.is(Op::AND);
  Operands o = operands(u);
  if (!o.fits) return {};
  if (o.decided) return bool_const(!neutral);
  if (neutral && !keep_tightest(o.list)) return bool_const(false);
  if (o.list.empty()) return bool_const(neutral);
  std::ranges::stable_sort(o.list, StructuralLess{});
  UOp out = o.list[0];
  for (size_t i = 1; i < o.list.size(); ++i) out = alu(u.op(), {out, o.list[i]});
  return out;
}

}  // namespace tinygrad::symbolic
