#include "renderer/cstyle/expression.h"

#include <limits>

#include <fmt/format.h>

namespace tinygrad::renderer::cstyle {
namespace {

bool is_bitwise(Binds b) { return b == Binds::shift || b == Binds::bit_and || b == Binds::bit_xor || b == Binds::bit_or; }

std::string in_parentheses(const Expr& x) { return "(" + x.text + ")"; }

/// Few people know how C's bitwise and logical operators bind: those get parentheses also where C needs none.
std::string operand(const Expr& x, Binds binds, bool on_the_right) {
  bool needs = x.binds > binds || (on_the_right && x.binds == binds);
  if (is_bitwise(binds) && x.binds > Binds::unary && x.binds != binds) needs = true;
  if (is_bitwise(x.binds) && x.binds != binds) needs = true;
  if (binds == Binds::logic_or && x.binds == Binds::logic_and) needs = true;
  if ((binds == Binds::order || binds == Binds::equality) && x.binds >= Binds::order) needs = true;
  return needs ? in_parentheses(x) : x.text;
}

std::string number(double value, DType dtype) {
  // The fewest digits that read back as the same number; a half's are those of the float with its value.
  std::string text = dtype == DType::float64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

}  // namespace

Expr binary(const Expr& a, std::string_view token, Binds binds, const Expr& b) {
  return {fmt::format("{} {} {}", operand(a, binds, false), token, operand(b, binds, true)), binds};
}

Expr prefixed(std::string_view prefix, const Expr& x) {
  const bool parentheses = x.binds > Binds::unary || x.text[0] == '-';
  return {std::string(prefix) + (parentheses ? in_parentheses(x) : x.text), Binds::unary};
}

std::string atom(const Expr& x) { return x.binds == Binds::primary ? x.text : in_parentheses(x); }

std::string_view without_parentheses(std::string_view operand) {
  return operand.starts_with('(') ? operand.substr(1, operand.size() - 2) : operand;
}

Expr choice(const Expr& condition, const Expr& yes, const Expr& no) {
  const auto part = [](const Expr& x) { return x.binds == Binds::choice ? in_parentheses(x) : x.text; };
  return {fmt::format("{} ? {} : {}", part(condition), part(yes), no.text), Binds::choice};
}

Expr literal(const Scalar& value, std::string_view suffix) {
  const DType d = value.dtype();
  if (is_bool(d)) return {value.as_bool() ? "true" : "false"};
  if (is_float(d)) {
    const double v = value.as_double();
    const bool negative = std::signbit(v) && !value.is_nan();
    const std::string magnitude = value.is_nan() ? "NAN" : value.is_inf() ? "INFINITY" : number(negative ? -v : v, d) + std::string(suffix);
    return {(negative ? "-" : "") + magnitude, negative ? Binds::unary : Binds::primary};
  }
  if (is_unsigned(d)) {
    const uint64_t v = value.as_uint();
    return {(v < 10000 ? fmt::format("{}", v) : fmt::format("{:#x}", v)) + std::string(suffix)};
  }
  const int64_t v = value.as_int();
  const bool least = v == std::numeric_limits<int32_t>::min() || v == std::numeric_limits<int64_t>::min();  // C has no literal for them
  if (least) return {fmt::format("{}{} - 1", v + 1, suffix), Binds::sum};
  return {fmt::format("{}{}", v, suffix), v < 0 ? Binds::unary : Binds::primary};
}

}  // namespace tinygrad::renderer::cstyle
