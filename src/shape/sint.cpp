#include "shape/sint.h"

#include <fmt/core.h>
#include <tinygrad/errors.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/quotient.h"
#include "shape/polynomial.h"
#include "symbolic/simplify.h"
#include "uop/build.h"
#include "uop/graph.h"

namespace tinygrad {

namespace {

__extension__ typedef __int128 Wide;

constexpr int64_t lowest = std::numeric_limits<int64_t>::min(), highest = std::numeric_limits<int64_t>::max();
constexpr SizeBounds unbounded{lowest, highest};

int64_t saturate(Wide v) { return v < lowest ? lowest : v > highest ? highest : static_cast<int64_t>(v); }

SizeBounds product_bounds(SizeBounds a, SizeBounds b) {
  const Wide p[] = {Wide(a.min) * b.min, Wide(a.min) * b.max, Wide(a.max) * b.min, Wide(a.max) * b.max};
  return {saturate(*std::min_element(p, p + 4)), saturate(*std::max_element(p, p + 4))};
}

SizeBounds bounds_of_node(const UOp& u, auto&& of) {
  switch (u.op()) {
    case Op::CONST: {
      const int64_t v = const_value(u)->as_int();
      return {v, v};
    }
    case Op::VAR: return {u.arg_as<VarArg>().min, u.arg_as<VarArg>().max};
    case Op::BIND: return of(u.src(0));
    case Op::RANGE:
    case Op::SPECIAL: return {0, saturate(Wide(of(u.src(0)).max) - 1)};
    case Op::ADD: return {saturate(Wide(of(u.src(0)).min) + of(u.src(1)).min), saturate(Wide(of(u.src(0)).max) + of(u.src(1)).max)};
    case Op::SUB: return {saturate(Wide(of(u.src(0)).min) - of(u.src(1)).max), saturate(Wide(of(u.src(0)).max) - of(u.src(1)).min)};
    case Op::NEG: return {saturate(-Wide(of(u.src(0)).max)), saturate(-Wide(of(u.src(0)).min))};
    case Op::MUL: return product_bounds(of(u.src(0)), of(u.src(1)));
    case Op::MAX: return {std::max(of(u.src(0)).min, of(u.src(1)).min), std::max(of(u.src(0)).max, of(u.src(1)).max)};
    case Op::WHERE: return {std::min(of(u.src(1)).min, of(u.src(2)).min), std::max(of(u.src(1)).max, of(u.src(2)).max)};
    case Op::FLOORDIV: {
      const SizeBounds a = of(u.src(0)), b = of(u.src(1));
      if (b.min != b.max || b.min <= 0) return unbounded;
      return {floor_quotient(a.min, b.min), floor_quotient(a.max, b.min)};
    }
    case Op::FLOORMOD: {
      const SizeBounds b = of(u.src(1));
      return b.min > 0 ? SizeBounds{0, b.max - 1} : unbounded;
    }
    default: return unbounded;
  }
}

SizeBounds expr_bounds(const UOp& expr) {
  const std::vector<UOp> order = toposort(expr);
  NodeMap<SizeBounds> done(order.size());
  for (const UOp& u : order) done[u] = bounds_of_node(u, [&](const UOp& s) { return *done.find(s); });
  return *done.find(expr);
}

SInt size_of(const shape::Polynomial& p) { return p.is_number() ? SInt(p.number()) : SInt(p.build()); }

SInt normalized(const UOp& expr) {
  const auto p = shape::Polynomial::of(expr);
  return p ? size_of(*p) : SInt(expr);
}

/// a / b where that is a polynomial too.
std::optional<SInt> exact_quotient(const SInt& a, const SInt& b) {
  const auto p = shape::Polynomial::of(a.uop()), q = shape::Polynomial::of(b.uop());
  if (!p || !q) return std::nullopt;
  const auto quotient = p->divided_by(*q);
  return quotient ? std::optional(size_of(*quotient)) : std::nullopt;
}

}  // namespace

SInt::SInt(const UOp& expr) {
  // A linear program has its sizes as CONSTs of a machine type.
  if (expr.dtype() != DType::index && !(expr.is(Op::CONST) && is_int(expr.dtype())))
    throw DTypeError("a size must be an index expression, got " + std::string(name(expr.dtype())) + ": " + print_expr(expr));
  if (expr.is(Op::CONST))
    value_ = const_value(expr)->as_int();
  else
    expr_ = expr;
}

int64_t SInt::value() const {
  if (expr_) throw ValueError("the size " + to_string(*this) + " is symbolic; a number is needed here");
  return value_;
}

UOp SInt::uop() const { return expr_ ? expr_ : index_const(value_); }

SizeBounds SInt::bounds() const { return expr_ ? expr_bounds(expr_) : SizeBounds{value_, value_}; }

bool SInt::equal(const SInt& a, const SInt& b) {
  if (a.expr_ == b.expr_) return true;  // both symbolic: two numbers do not come here
  const SInt difference = a - b;
  return difference.known() && difference.value_ == 0;
}

SInt SInt::combine(Op op, const SInt& a, const SInt& b) {
  if (a.known() && b.known())
    throw ShapeError(fmt::format("sizes beyond 64 bits: {} {} {}", a.value_, op == Op::ADD ? "+" : op == Op::SUB ? "-" : "*", b.value_));
  return normalized(alu(op, {a.uop(), b.uop()}));
}

namespace {

/// What the values of its BINDs make of a size: a CONST, unless a variable has none.
UOp with_values(const SInt& s) {
  NodeMap<UOp> values;
  for (const UOp& u : toposort(s.uop()))
    if (u.is(Op::BIND)) values[u] = u.src(1);
  return symbolic::simplify_index(substitute(s.uop(), values));
}

}  // namespace

int64_t value_now(const SInt& s) {
  if (s.known()) return s.value();
  const UOp value = with_values(s);
  if (!value.is(Op::CONST)) throw ValueError("the size " + to_string(s) + " has no value; bind its variables");
  return const_value(value)->as_int();
}

namespace {

SizeAssumptions*& current_assumptions() {
  thread_local SizeAssumptions* current = nullptr;
  return current;
}

}  // namespace

SizeAssumptions::SizeAssumptions() : outer_(std::exchange(current_assumptions(), this)) {}
SizeAssumptions::~SizeAssumptions() { current_assumptions() = outer_; }

void SizeAssumptions::add(const SInt& difference) {
  if (difference.min() >= 0) return;
  const UOp expression = difference.uop();
  if (std::find(not_negative_.begin(), not_negative_.end(), expression) == not_negative_.end()) not_negative_.push_back(expression);
}

bool less_now(const SInt& a, const SInt& b) {
  if (a.known() && b.known()) return a.value() < b.value();
  if (surely_less(a, b)) return true;
  const SInt difference = b - a;
  if (difference.known()) return difference.value() > 0;
  const UOp value = with_values(difference);
  if (value.is(Op::CONST) && const_value(value)->as_int() > 0) return true;
  if (SizeAssumptions* assumptions = current_assumptions()) assumptions->add(a - b);
  return false;
}

SInt floor_div(const SInt& a, const SInt& b) {
  if (b.known() && b.value() == 0) throw ValueError("division of the size " + to_string(a) + " by 0");
  if (a.known() && b.known()) return floor_quotient(a.value(), b.value());
  if (const auto exact = exact_quotient(a, b)) return *exact;
  return SInt(floor_div(a.uop(), b.uop()));
}

SInt ceil_div(const SInt& a, const SInt& b) { return floor_div(a + b - 1, b); }

SInt floor_mod(const SInt& a, const SInt& b) {
  if (a.known() && b.known() && b.value() != 0) return a - floor_div(a, b) * b;
  if (exact_quotient(a, b)) return 0;
  return SInt(floor_mod(a.uop(), b.uop()));
}

SInt max(const SInt& a, const SInt& b) {
  if (surely_not_greater(a, b)) return b;
  if (surely_not_greater(b, a)) return a;
  return SInt(max(a.uop(), b.uop()));
}

SInt min(const SInt& a, const SInt& b) {
  if (surely_not_greater(a, b)) return a;
  if (surely_not_greater(b, a)) return b;
  return SInt(min(a.uop(), b.uop()));
}

bool surely_less(const SInt& a, const SInt& b) { return (b - a).min() > 0; }
bool surely_not_greater(const SInt& a, const SInt& b) { return (b - a).min() >= 0; }
bool surely_differ(const SInt& a, const SInt& b) {
  const SizeBounds d = (a - b).bounds();
  return d.min > 0 || d.max < 0;
}

uint64_t hash_value(const SInt& s) noexcept { return s.known() ? hash_value(s.min()) : s.uop()->hash; }

std::string to_string(const SInt& s) { return s.known() ? std::to_string(s.value()) : print_expr(s.uop()); }

}  // namespace tinygrad
