#include "symbolic/linear.h"

#include <algorithm>

#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad::symbolic {

namespace {

__extension__ typedef __int128 Wide;

/// acc += a*b; false if it does not fit.
bool multiply_add(int64_t& acc, int64_t a, int64_t b) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(acc, product, &acc);
}

/// Multiplies a product out into its constant and its other factors; false on overflow or too many.
bool take_factors(const UOp& u, int64_t& constant, SmallVector<UOp, 4>& factors) {
  SmallVector<UOp, 8> stack{u};
  while (!stack.empty()) {
    const UOp f = stack.back();
    stack.pop_back();
    if (f.is(Op::MUL)) {
      stack.push_back(f.src(1));
      stack.push_back(f.src(0));
    } else if (f.is(Op::CONST)) {
      if (__builtin_mul_overflow(constant, const_value(f)->as_int(), &constant)) return false;
    } else if (factors.push_back(f); factors.size() > 16) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool Linear::add(const UOp& node, int64_t factor) {
  for (Term& t : terms)
    if (t.node == node) return !__builtin_add_overflow(t.factor, factor, &t.factor);
  if (terms.size() == max_terms) return false;
  terms.push_back({node, factor});
  return true;
}

bool Linear::add(const Linear& other, int64_t factor) {
  for (const Term& t : other.terms) {
    int64_t f = 0;
    if (!multiply_add(f, t.factor, factor) || !add(t.node, f)) return false;
  }
  return multiply_add(offset, other.offset, factor);
}

bool Linear::add_expression(const UOp& root, int64_t root_factor) {
  struct Part {
    UOp node;
    int64_t factor;
  };
  SmallVector<Part, 12> stack{{root, root_factor}};
  size_t steps = 0;
  while (!stack.empty()) {
    const auto [u, factor] = stack.back();
    stack.pop_back();
    if (++steps > 4 * max_terms) return false;  // a shared sum unfolds: do not follow it far
    int64_t scaled = factor;
    switch (u.op()) {
      case Op::CONST:
        if (!multiply_add(offset, const_value(u)->as_int(), factor)) return false;
        continue;
      case Op::ADD:
        stack.push_back({u.src(1), factor});
        stack.push_back({u.src(0), factor});
        continue;
      case Op::NEG:
      case Op::SUB:
        if (__builtin_mul_overflow(factor, int64_t(-1), &scaled)) return false;
        stack.push_back({u.src(u.src_count() - 1), scaled});
        if (u.is(Op::SUB)) stack.push_back({u.src(0), factor});
        continue;
      case Op::MUL: {
        SmallVector<UOp, 4> factors;
        if (!take_factors(u, scaled, factors)) return false;
        if (factors.empty()) {
          if (__builtin_add_overflow(offset, scaled, &offset)) return false;
        } else if (factors.size() == 1) {
          stack.push_back({factors[0], scaled});
        } else {
          std::ranges::stable_sort(factors, StructuralLess{});
          UOp product = factors[0];
          for (size_t i = 1; i < factors.size(); ++i) product = product * factors[i];
          if (!add(product, scaled)) return false;
        }
        continue;
      }
      default:
        if (!add(u, factor)) return false;
    }
  }
  return true;
}

void Linear::drop_zeros() {
  auto zeros = std::ranges::remove(terms, int64_t(0), &Term::factor);
  terms.erase(zeros.begin(), zeros.end());
}

namespace {

/// The sum with k*c*(n//c) written as k*n - k*(n%c), the last term of which reaches from 0 to `most`; none without such a term.
struct WithoutQuotient {
  Linear sum;
  int64_t most = 0;
};

std::optional<WithoutQuotient> without_quotient(const Linear& sum) {
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Term& t = sum.terms[i];
    if (!t.node.is(Op::FLOORDIV) || !t.node.src(1).is(Op::CONST)) continue;
    const int64_t c = const_value(t.node.src(1))->as_int();
    if (c <= 1 || t.factor % c != 0) continue;
    WithoutQuotient out{sum, 0};
    out.sum.terms.erase(out.sum.terms.begin() + std::ptrdiff_t(i));
    if (!out.sum.add_expression(t.node.src(0), t.factor / c) || !multiply_add(out.most, t.factor / c, 1 - c)) return std::nullopt;
    out.sum.drop_zeros();
    return out;
  }
  return std::nullopt;
}

Bounds intersection(const Bounds& a, const Bounds& b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

}  // namespace

Bounds Linear::bounds() const {
  const Bounds apart = bounds_of_terms();
  const auto other = without_quotient(*this);
  if (!other || apart.single()) return apart;
  const Bounds b = other->sum.bounds();
  Bounds shifted;  // b + [most, 0], or b + [0, most]
  if (b.has_min() && __builtin_add_overflow(b.min, std::min<int64_t>(other->most, 0), &shifted.min)) shifted.min = Bounds{}.min;
  if (b.has_max() && __builtin_add_overflow(b.max, std::max<int64_t>(other->most, 0), &shifted.max)) shifted.max = Bounds{}.max;
  return intersection(apart, shifted);
}

Bounds Linear::bounds_of_terms() const {
  // A term's finite bound has up to 126 bits. Beyond `far` it counts as none on its own side and as `far` on the other: 64 of them fit.
  constexpr Wide far = Wide(1) << 100;
  Wide lo = offset, hi = offset;
  bool has_lo = true, has_hi = true;
  for (const Term& t : terms) {
    if (t.factor == 0) continue;
    const Bounds b = symbolic::bounds(t.node);
    const bool up = t.factor > 0;
    const Wide least = Wide(up ? b.min : b.max) * t.factor, most = Wide(up ? b.max : b.min) * t.factor;
    has_lo &= (up ? b.has_min() : b.has_max()) && least > -far;
    has_hi &= (up ? b.has_max() : b.has_min()) && most < far;
    if (has_lo) lo += std::min(least, far);
    if (has_hi) hi += std::max(most, -far);
  }
  Bounds out;
  if (has_lo && lo > out.min) out.min = int64_t(std::min<Wide>(lo, Bounds{}.max - 1));
  if (has_hi && hi < out.max) out.max = int64_t(std::max<Wide>(hi, Bounds{}.min + 1));
  return out;
}

bool Linear::is_written_as(const UOp& u) const {
  const UOp* at = &u;
  if (offset != 0 && !terms.empty()) {
    if (!at->is(Op::ADD) || !is_const(at->src(1), offset)) return false;
    at = &at->src(0);
  }
  // The terms from the last to the first; each must be smaller than the one before.
  const UOp* larger = nullptr;
  for (size_t left = terms.size(); left > 0; --left) {
    if (left > 1 && !at->is(Op::ADD)) return false;
    const UOp& part = left > 1 ? at->src(1) : *at;
    const auto is_part = [&](const Term& t) {
      if (t.factor == 1) return part == t.node;
      return part.is(Op::MUL) && part.src(0) == t.node && is_const(part.src(1), t.factor);
    };
    const auto term = std::ranges::find_if(terms, is_part);
    if (term == terms.end() || term->factor == 0 || (larger && compare(term->node, *larger) >= 0)) return false;
    larger = &term->node;
    if (left > 1) at = &at->src(0);
  }
  return !terms.empty();
}

UOp Linear::build() const {
  SmallVector<Term, 6> sorted = terms;
  std::ranges::stable_sort(sorted, [](const Term& a, const Term& b) { return compare(a.node, b.node) < 0; });
  UOp sum;
  for (const Term& t : sorted) {
    if (t.factor == 0) continue;
    const UOp part = t.factor == 1 ? t.node : t.node * t.factor;
    sum = sum ? sum + part : part;
  }
  if (!sum) return index_const(offset);
  return offset == 0 ? sum : sum + offset;
}

std::optional<Linear> linear(const UOp& u) {
  Linear out;
  if (!out.add_expression(u, 1)) return std::nullopt;
  out.drop_zeros();
  return out;
}

std::optional<Linear> difference(const UOp& a, const UOp& b) {
  Linear out;
  if (!out.add_expression(a, 1) || !out.add_expression(b, -1)) return std::nullopt;
  out.drop_zeros();
  return out;
}

}  // namespace tinygrad::symbolic
