// Operators of Python on sizes and other numbers.
#include <fmt/core.h>

#include <cmath>

#include "frontend/aten/call.h"

namespace tinygrad::aten {

namespace {

bool is_float(const Value& v) { return v.get_if<double>() != nullptr; }
bool is_symbolic(const Value& v) { return v.get_if<Extent>() != nullptr; }

int64_t checked(const Call& c, bool overflows, int64_t value) {
  if (overflows) c.fail("the result has more than 64 bits");
  return value;
}

Value add(const Call& c, const Value& a, const Value& b) {
  if (is_float(a) || is_float(b)) return a.number() + b.number();
  if (is_symbolic(a) || is_symbolic(b)) return a.extent() + b.extent();
  int64_t out = 0;
  const bool overflows = __builtin_add_overflow(a.integer(), b.integer(), &out);
  return checked(c, overflows, out);
}
Value sub(const Call& c, const Value& a, const Value& b) {
  if (is_float(a) || is_float(b)) return a.number() - b.number();
  if (is_symbolic(a) || is_symbolic(b)) return a.extent() - b.extent();
  int64_t out = 0;
  const bool overflows = __builtin_sub_overflow(a.integer(), b.integer(), &out);
  return checked(c, overflows, out);
}
Value mul(const Call& c, const Value& a, const Value& b) {
  if (is_float(a) || is_float(b)) return a.number() * b.number();
  if (is_symbolic(a) || is_symbolic(b)) return a.extent() * b.extent();
  int64_t out = 0;
  const bool overflows = __builtin_mul_overflow(a.integer(), b.integer(), &out);
  return checked(c, overflows, out);
}
void check_divisor(const Call& c, const Value& b) {
  if (!is_symbolic(b) && b.number() == 0) c.fail("division by zero");
}
Value floor_divide(const Call& c, const Value& a, const Value& b) {
  check_divisor(c, b);
  if (is_float(a) || is_float(b)) return std::floor(a.number() / b.number());
  if (is_symbolic(a) || is_symbolic(b)) return a.extent() / b.extent();
  const int64_t x = a.integer(), y = b.integer();
  if (y == -1) return sub(c, 0, x);
  return x / y - int64_t(x % y != 0 && (x < 0) != (y < 0));
}
Value remainder(const Call& c, const Value& a, const Value& b) {
  check_divisor(c, b);
  if (is_float(a) || is_float(b)) {
    const double r = std::fmod(a.number(), b.number());
    return r != 0 && (r < 0) != (b.number() < 0) ? r + b.number() : r;
  }
  if (is_symbolic(a) || is_symbolic(b)) return a.extent() % b.extent();
  const int64_t y = b.integer(), r = y == -1 ? 0 : a.integer() % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
Value divide(const Call& c, const Value& a, const Value& b) {
  check_divisor(c, b);
  return a.number() / b.number();
}
Value power(const Call& c, const Value& a, const Value& b) {
  if (is_float(a) || is_float(b) || b.number() < 0) {
    if (a.number() == 0 && b.number() < 0) c.fail("0 to a negative power");
    const double out = std::pow(a.number(), b.number());
    if (std::isnan(out) && !std::isnan(a.number()) && !std::isnan(b.number())) c.fail("a negative number to a power that is not whole");
    return out;
  }
  Value out = 1;
  constexpr int64_t most = 4096;
  if (b.integer() > most) c.fail("the exponent is too large");
  for (int64_t i = 0; i < b.integer(); ++i) out = mul(c, out, a);
  return out;
}

/// -1, 0 or 1; comparisons with NaN are all false but `ne`, which 2 stands for.
int order(const Value& a, const Value& b) {
  if (is_float(a) || is_float(b)) {
    const double x = a.number(), y = b.number();
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
  }
  const Extent x = a.extent(), y = b.extent();
  if (x == y) return 0;
  const int64_t m = x.value(), n = y.value();
  return m < n ? -1 : m > n ? 1 : 0;
}

Value greatest(const Call&, const Value& a, const Value& b) { return order(a, b) < 0 ? b : a; }
Value least(const Call&, const Value& a, const Value& b) { return order(b, a) < 0 ? b : a; }

using Binary = Value (*)(const Call&, const Value&, const Value&);
template <Binary f>
Results binary(const Call& c) {
  return {f(c, c["a"], c["b"])};
}

Value whole(const Call& c, double x) {
  constexpr double limit = 9223372036854775808.0;
  if (!(x >= -limit && x < limit)) c.fail("the result has more than 64 bits");
  return int64_t(x);
}
/// Of an integer itself, of a float what `f` makes of it.
/// The argument of a function that has one.
const Value& only(const Call& c) { return c[c.declares("x") ? "x" : "a"]; }

template <double (*f)(double)>
Results rounded(const Call& c) {
  const Value& a = only(c);
  return {is_float(a) ? whole(c, f(a.number())) : Value(a.extent())};
}
template <double (*f)(double)>
Results real(const Call& c) {
  return {f(only(c).number())};
}

Results negative(const Call& c) { return {sub(c, 0, c["a"])}; }
Results magnitude(const Call& c) {
  const Value& a = c["a"];
  return {order(a, 0) < 0 ? sub(c, 0, a) : a};
}
Results logical_not(const Call& c) { return {order(c["a"], 0) == 0}; }
Results both(const Call& c) {
  if (c["a"].get_if<bool>() && c["b"].get_if<bool>()) return {c.flag("a") && c.flag("b")};
  return {c.integer("a") & c.integer("b")};
}
Results either(const Call& c) {
  if (c["a"].get_if<bool>() && c["b"].get_if<bool>()) return {c.flag("a") || c.flag("b")};
  return {c.integer("a") | c.integer("b")};
}
Results choose(const Call& c) { return {c.flag("b") ? c["t"] : c["f"]}; }
Results as_float(const Call& c) { return {c["a"].number()}; }
Results as_int(const Call& c) {
  const Value& a = c["a"];
  return {is_float(a) ? whole(c, std::trunc(a.number())) : Value(a.extent())};
}
Results sum(const Call& c) {
  Value out = 0;
  for (const Value& v : c["args"].list()) out = add(c, out, v);
  return {out};
}
Results round_to(const Call& c) {
  const Value& a = c["number"];
  if (!c.has("ndigits")) return {is_float(a) ? whole(c, std::nearbyint(a.number())) : Value(a.extent())};
  const double scale = std::pow(10.0, c.number("ndigits"));
  return {std::nearbyint(a.number() * scale) / scale};
}

}  // namespace

std::vector<Row> number_operators() {
  return {
      {"_operator.add(Scalar a, Scalar b)", binary<add>},
      {"_operator.sub(Scalar a, Scalar b)", binary<sub>},
      {"_operator.mul(Scalar a, Scalar b)", binary<mul>},
      {"_operator.floordiv(Scalar a, Scalar b)", binary<floor_divide>},
      {"_operator.mod(Scalar a, Scalar b)", binary<remainder>},
      {"_operator.truediv(Scalar a, Scalar b)", binary<divide>},
      {"_operator.pow(Scalar a, Scalar b)", binary<power>},
      {"_operator.neg(Scalar a)", negative},
      {"_operator.pos(Scalar a)", [](const Call& c) { return Results{c["a"]}; }},
      {"_operator.abs(Scalar a)", magnitude},
      {"_operator.eq(Scalar a, Scalar b)", [](const Call& c) { return Results{order(c["a"], c["b"]) == 0}; }},
      {"_operator.ne(Scalar a, Scalar b)", [](const Call& c) { return Results{order(c["a"], c["b"]) != 0}; }},
      {"_operator.lt(Scalar a, Scalar b)", [](const Call& c) { return Results{order(c["a"], c["b"]) == -1}; }},
      {"_operator.gt(Scalar a, Scalar b)", [](const Call& c) { return Results{order(c["a"], c["b"]) == 1}; }},
      {"_operator.le(Scalar a, Scalar b)", [](const Call& c) { return Results{order(c["a"], c["b"]) <= 0}; }},
      {"_operator.ge(Scalar a, Scalar b)", [](const Call& c) { return Results{(order(c["a"], c["b"]) & ~1) == 0}; }},
      {"_operator.and_(Scalar a, Scalar b)", both},
      {"_operator.or_(Scalar a, Scalar b)", either},
      {"_operator.not_(Scalar a)", logical_not},
      {"torch.sym_not(Scalar a)", logical_not},
      {"torch.sym_max(Scalar a, Scalar b)", binary<greatest>},
      {"torch.sym_min(Scalar a, Scalar b)", binary<least>},
      {"torch.sym_float(Scalar a)", as_float},
      {"torch.sym_int(Scalar a)", as_int},
      {"torch.sym_ite(bool b, Scalar t, Scalar f)", choose},
      {"torch.sym_sum(Scalar[] args)", sum},
      {"math.ceil(Scalar x)", rounded<std::ceil>},
      {"math.floor(Scalar x)", rounded<std::floor>},
      {"math.trunc(Scalar x)", rounded<std::trunc>},
      {"_operator.trunc(Scalar a)", rounded<std::trunc>},
      {"torch._sym_sqrt(Scalar a)", real<std::sqrt>},
      {"math.sqrt(Scalar x)", real<std::sqrt>},
      {"math.log2(Scalar x)", real<std::log2>},
      {"builtins.round(Scalar number, int? ndigits=None)", round_to},
  };
}

}  // namespace tinygrad::aten
