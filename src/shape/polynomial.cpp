#include "shape/polynomial.h"

#include <algorithm>
#include <iterator>

#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::shape {

namespace {

// Sizes have a handful of terms; past this an expression is left as it is.
constexpr size_t max_terms = 64;
constexpr size_t max_nodes = 512;

/// The node with variables in the place of their values.
UOp form_of(const UOp& u) {
  if (u.is(Op::BIND)) return u.src(0);
  if (u.src_count() == 0) return u;
  NodeMap<UOp> variables;
  for (const UOp& v : toposort(u))
    if (v.is(Op::BIND)) variables[v] = v.src(0);
  return variables.size() ? substitute(u, variables) : u;
}

/// An order that is the same for all values of variables, so that a form of a size is, too.
struct FormLess {
  bool operator()(const UOp& a, const UOp& b) const {
    if (a == b) return false;
    const std::strong_ordering order = compare(form_of(a), form_of(b));
    return order == 0 ? compare(a, b) < 0 : order < 0;
  }
};

bool less_atoms(const std::vector<UOp>& a, const std::vector<UOp>& b) {
  if (a.size() != b.size()) return a.size() > b.size();  // higher degree first, so that the constant is last
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), FormLess{});
}

bool is_algebra(const UOp& u) { return u.is(Op::ADD) || u.is(Op::SUB) || u.is(Op::MUL) || u.is(Op::NEG); }

}  // namespace

Polynomial Polynomial::constant(int64_t value) {
  Polynomial p;
  if (value) p.terms_.push_back({{}, value});
  return p;
}

Polynomial Polynomial::atom(const UOp& u) {
  Polynomial p;
  p.terms_.push_back({{u}, 1});
  return p;
}

void Polynomial::normalize() {
  std::sort(terms_.begin(), terms_.end(), [](const Term& a, const Term& b) { return less_atoms(a.atoms, b.atoms); });
  std::vector<Term> merged;
  for (Term& t : terms_) {
    if (!merged.empty() && merged.back().atoms == t.atoms)
      merged.back().coefficient += t.coefficient;
    else
      merged.push_back(std::move(t));
  }
  std::erase_if(merged, [](const Term& t) { return t.coefficient == 0; });
  terms_ = std::move(merged);
}

Polynomial Polynomial::add(const Polynomial& a, const Polynomial& b, int64_t sign) {
  Polynomial p = a;
  for (const Term& t : b.terms_) p.terms_.push_back({t.atoms, t.coefficient * sign});
  p.normalize();
  return p;
}

Polynomial Polynomial::multiply(const Polynomial& a, const Polynomial& b) {
  Polynomial p;
  for (const Term& x : a.terms_)
    for (const Term& y : b.terms_) {
      Term t{x.atoms, x.coefficient * y.coefficient};
      t.atoms.insert(t.atoms.end(), y.atoms.begin(), y.atoms.end());
      std::sort(t.atoms.begin(), t.atoms.end(), FormLess{});
      p.terms_.push_back(std::move(t));
    }
  p.normalize();
  return p;
}

std::optional<Polynomial> Polynomial::divided_by(const Polynomial& divisor) const {
  if (divisor.terms_.empty()) return std::nullopt;
  const Term& lead = divisor.terms_.front();
  Polynomial rest = *this, quotient;
  for (size_t steps = 0; !rest.terms_.empty(); ++steps) {
    const Term& first = rest.terms_.front();
    const bool divides = std::includes(first.atoms.begin(), first.atoms.end(), lead.atoms.begin(), lead.atoms.end(), FormLess{});
    if (!divides || first.coefficient % lead.coefficient != 0 || steps == max_terms) return std::nullopt;
    Polynomial part;
    Term& t = part.terms_.emplace_back();
    t.coefficient = first.coefficient / lead.coefficient;
    std::set_difference(first.atoms.begin(), first.atoms.end(), lead.atoms.begin(), lead.atoms.end(), std::back_inserter(t.atoms),
                        FormLess{});
    rest = add(rest, multiply(part, divisor), -1);
    quotient = add(quotient, part, 1);
  }
  return quotient;
}

std::optional<Polynomial> Polynomial::of(const UOp& expr) {
  const std::vector<UOp> order = toposort_where(std::span(&expr, 1), is_algebra);
  if (order.size() > max_nodes) return std::nullopt;
  NodeMap<Polynomial> done(order.size());
  for (const UOp& u : order) {
    if (const Scalar* c = u.is(Op::CONST) ? const_value(u) : nullptr) {
      done[u] = constant(c->as_int());
    } else if (!is_algebra(u)) {
      done[u] = atom(u);
    } else {
      const Polynomial& a = *done.find(u.src(0));
      if (u.is(Op::NEG)) {
        done[u] = add({}, a, -1);
        continue;
      }
      const Polynomial& b = *done.find(u.src(1));
      if (u.is(Op::MUL) && a.terms_.size() * b.terms_.size() > max_terms) return std::nullopt;
      Polynomial p = u.is(Op::MUL) ? multiply(a, b) : add(a, b, u.is(Op::ADD) ? 1 : -1);
      if (p.terms_.size() > max_terms) return std::nullopt;
      done[u] = std::move(p);
    }
  }
  return std::move(*done.find(expr));
}

UOp Polynomial::build() const {
  UOp sum;
  for (const Term& t : terms_) {
    UOp product;
    for (const UOp& a : t.atoms) product = product ? product * a : a;
    if (!product)
      product = index_const(t.coefficient);
    else if (t.coefficient != 1)
      product = product * t.coefficient;
    sum = sum ? sum + product : product;
  }
  return sum ? sum : index_const(0);
}

}  // namespace tinygrad::shape
