#include "symbolic/gated.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "symbolic/linear.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

// Under a condition X < c an expression is simplified with a variable of tighter bounds in the place of X: one of X's terms t is written as
// v - (X - t), and v as X again afterwards.

namespace tinygrad::symbolic {

namespace {

constexpr size_t most_clauses = 8;

/// What a clause says: the sum lies within the bounds.
struct Fact {
  Linear sum;
  Bounds bounds;
};

bool is_not(const UOp& u) { return u.is(Op::CMPNE) && u.src(0).dtype() == DType::bool_ && is_const(u.src(1), 1); }

std::optional<Fact> fact_of(const UOp& clause) {
  const bool negated = is_not(clause);
  const UOp& compared = negated ? clause.src(0) : clause;
  const bool equal = compared.is(Op::CMPEQ) && !negated;
  if ((!compared.is(Op::CMPLT) && !equal) || compared.src(0).dtype() != DType::index) return std::nullopt;
  auto sum = difference(compared.src(0), compared.src(1));
  if (!sum || sum->terms.empty()) return std::nullopt;
  int64_t limit = 0;  // sum < limit, or not, or sum == limit
  if (__builtin_sub_overflow(int64_t{0}, sum->offset, &limit) || limit == Bounds{}.min) return std::nullopt;
  sum->offset = 0;
  Fact f{*sum, sum->bounds()};
  if (negated || equal) f.bounds.min = std::max(f.bounds.min, limit);
  if (equal)
    f.bounds.max = std::min(f.bounds.max, limit);
  else if (!negated)
    f.bounds.max = std::min(f.bounds.max, limit - 1);
  if (!f.bounds.has_min() || !f.bounds.has_max() || f.bounds.min > f.bounds.max) return std::nullopt;
  return f;
}

bool same_terms(const Linear& a, const Linear& b) {
  return a.terms.size() == b.terms.size() && std::ranges::all_of(a.terms, [&](const Term& t) {
           return std::ranges::any_of(b.terms, [&](const Term& s) { return s.node == t.node && s.factor == t.factor; });
         });
}

/// The facts of all clauses but one, those on one sum joined.
std::vector<Fact> facts_of(const std::vector<UOp>& clauses, size_t except) {
  std::vector<Fact> out;
  for (size_t i = 0; i < clauses.size(); ++i) {
    const auto fact = i == except ? std::nullopt : fact_of(clauses[i]);
    if (!fact) continue;
    const auto known = std::ranges::find_if(out, [&](const Fact& f) { return same_terms(f.sum, fact->sum); });
    if (known == out.end()) {
      out.push_back(*fact);
    } else {
      known->bounds.min = std::max(known->bounds.min, fact->bounds.min);
      known->bounds.max = std::min(known->bounds.max, fact->bounds.max);
    }
  }
  return out;
}

/// `u` where n%c is known to be k: c*(n//c) is n - k.
UOp with_exact_quotients(const UOp& u, const UOp& remainder, int64_t k) {
  const UOp &n = remainder.src(0), &divisor = remainder.src(1);
  const UOp quotient = floor_div(n, divisor);
  const int64_t c = const_value(divisor)->as_int();
  NodeMap<UOp> exact;
  for (const UOp& product : toposort(u)) {
    if (!product.is(Op::MUL) || product.src(0) != quotient || !product.src(1).is(Op::CONST)) continue;
    const int64_t factor = const_value(product.src(1))->as_int();
    if (factor % c == 0) exact[product] = (n - k) * (factor / c);
  }
  return exact.size() == 0 ? u : simplify_index(substitute(u, exact));
}

/// An expression with a variable of the fact's bounds for the fact's sum.
struct InItsPlace {
  UOp index, sum;
};

/// `u` with one of the terms written by the sum; none where `u` does not have the term.
std::optional<InItsPlace> in_the_place_of(const UOp& u, const Term& t, const Fact& fact) {
  if ((t.factor != 1 && t.factor != -1) || t.node.is(Op::CONST) || !reaches(u, t.node)) return std::nullopt;
  Linear rest = fact.sum, term;  // the term, by the variable
  const UOp v = variable("within the gate", fact.bounds.min, fact.bounds.max);
  if (!rest.add(t.node, -t.factor)) return std::nullopt;
  rest.drop_zeros();
  if (!term.add(v, t.factor) || !term.add(rest, -t.factor)) return std::nullopt;
  NodeMap<UOp> there;
  there[t.node] = term.build();
  return InItsPlace{simplify_index(substitute(u, there)), v};
}

/// `u` where a fact holds.
UOp under(const UOp& u, const Fact& fact) {
  if (fact.bounds.min > fact.bounds.max) return u;
  if (const UOp& only = fact.sum.terms[0].node; fact.sum.terms.size() == 1 && fact.sum.terms[0].factor == 1 && fact.bounds.single() &&
                                                only.is(Op::FLOORMOD) && only.src(1).is(Op::CONST) &&
                                                const_value(only.src(1))->as_int() > 0) {
    const UOp other = with_exact_quotients(u, only, fact.bounds.min);
    if (other != u) return other;
  }
  for (const Term& t : fact.sum.terms) {
    const auto there = in_the_place_of(u, t, fact);
    if (!there) continue;
    NodeMap<UOp> back;
    back[there->sum] = fact.sum.build();
    return simplify_index(substitute(there->index, back));
  }
  return u;
}

bool is_division(const UOp& u) { return u.is(Op::FLOORDIV) || u.is(Op::FLOORMOD) || u.is(Op::CDIV) || u.is(Op::CMOD); }

/// True for an expression without loads and reductions. Nodes that close a range of their own must not be substituted in.
bool is_plain(const UOp& u) {
  return std::ranges::all_of(toposort(u), [](const UOp& n) {
    return n.in(Group::alu) || n.is(Op::CONST) || n.is(Op::VAR) || n.is(Op::RANGE) || n.is(Op::SPECIAL);
  });
}

int cost(const UOp& u) {
  int sum = 0;
  for (const UOp& n : toposort(u))
    if (n.in(Group::alu)) sum += is_division(n) ? 8 : 1;
  return sum;
}

}  // namespace

std::vector<UOp> clauses_of(const UOp& valid) {
  std::vector<UOp> out;
  SmallVector<UOp, 16> stack{valid};
  while (!stack.empty()) {
    const UOp u = stack.back();
    stack.pop_back();
    if (u.is(Op::AND)) {
      stack.push_back(u.src(1));
      stack.push_back(u.src(0));
    } else {
      out.push_back(u);
    }
  }
  return out;
}

bool is_outside_unless(const UOp& index, int64_t size, const UOp& clause) {
  if (!is_plain(index) || !is_plain(clause)) return false;
  const auto fact = fact_of(is_not(clause) ? UOp(clause.src(0)) : ne(clause, bool_const(true)));
  if (!fact) return false;
  for (const Term& t : fact->sum.terms) {
    const auto there = in_the_place_of(index, t, *fact);
    if (!there) continue;
    const Bounds b = bounds(there->index);
    if (b.max < 0 || b.min >= size) return true;
  }
  return false;
}

Gated simplify_gated(const UOp& index, const UOp& valid) {
  Gated g{simplify_index(index), simplify_index(valid)};
  if (!is_plain(g.index) || !is_plain(g.valid)) return g;
  std::vector<UOp> clauses = clauses_of(g.valid);
  if (clauses.size() > most_clauses) return g;
  bool dropped = false;
  for (size_t i = 0; i < clauses.size();) {
    const bool implied = std::ranges::any_of(facts_of(clauses, i), [&](const Fact& f) { return is_const(under(clauses[i], f), 1); });
    if (implied) clauses.erase(clauses.begin() + std::ptrdiff_t(i));
    dropped |= implied;
    i += !implied;
  }
  if (dropped) {
    UOp all;
    for (const UOp& c : clauses) all = all ? all & c : c;
    g.valid = all ? simplify_index(all) : bool_const(true);
  }
  // A sum without divisions cannot get shorter.
  if (std::ranges::none_of(toposort(g.index), is_division)) return g;
  for (const Fact& f : facts_of(clauses, clauses.size()))
    if (const UOp other = under(g.index, f); other != g.index && cost(other) < cost(g.index)) g.index = other;
  return g;
}

}  // namespace tinygrad::symbolic
