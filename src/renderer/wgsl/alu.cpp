// The ALU ops by the definitions of dtype/scalar_ops.h. What WGSL leaves open goes through functions in front of the kernel.
#include <cmath>

#include <fmt/format.h>
#include <tinygrad/errors.h>

#include "renderer/wgsl/value.h"

namespace tinygrad::renderer::wgsl {

namespace {

using cstyle::atom;
using cstyle::binary;
using cstyle::prefixed;

/// A shift takes operands that hold together by themselves only.
Expr shift(const Expr& x, std::string_view token, const Expr& amount) {
  const auto operand = [](const Expr& e) { return e.binds <= Binds::unary ? e.text : "(" + e.text + ")"; };
  return {fmt::format("{} {} {}", operand(x), token, operand(amount)), Binds::shift};
}

class Alu {
 public:
  Alu(Prelude& prelude, std::span<const Term> sources) : prelude_(prelude), sources_(sources), type_(type_of(prelude, sources[0].dtype)) {}

  Expr write(Op op) {
    const DType d = sources_[0].dtype;
    switch (op) {
      case Op::ADD: return infix("+", Binds::sum);
      case Op::SUB: return infix("-", Binds::sum);
      case Op::MUL: return infix("*", Binds::product);
      case Op::FDIV: return infix("/", Binds::product);
      case Op::MULACC: return is_float(d) ? call("fma", {x().text, y().text, z().text}) : binary(product(), "+", Binds::sum, z());
      case Op::NEG: return is_unsigned(d) ? binary({"0u"}, "-", Binds::sum, x()) : prefixed("-", x());
      case Op::RECIPROCAL: return binary(number(prelude_, Scalar::from_int(1, d)), "/", Binds::product, x());
      case Op::SQRT: return call("sqrt", {x().text});
      case Op::TRUNC: return call("trunc", {x().text});
      case Op::EXP2: return call("exp2", {x().text});
      case Op::LOG2: return call("log2", {x().text});
      case Op::SIN: return call("sin", {x().text});
      case Op::CDIV: return quotient();
      case Op::CMOD: return remainder();
      case Op::MAX: return is_float(d) ? maximum() : call("max", {x().text, y().text});
      case Op::CMPLT: return is_bool(d) ? binary(prefixed("!", x()), "&", Binds::bit_and, y()) : infix("<", Binds::order);
      case Op::CMPEQ: return infix("==", Binds::equality);
      case Op::CMPNE: return is_negation() ? prefixed("!", x()) : differs(x(), y(), d);
      case Op::AND: return infix("&", Binds::bit_and);
      case Op::OR: return infix("|", Binds::bit_or);
      case Op::XOR: return is_bool(d) ? infix("!=", Binds::equality) : infix("^", Binds::bit_xor);
      case Op::SHL: return shift_left();
      case Op::SHR: return shift_right();
      case Op::WHERE: return select(x(), y(), z());
      default: break;
    }
    throw InternalError(fmt::format("WGSL: no {}; it must be decomposed before rendering", name(op)));
  }

 private:
  const Expr& x() const { return sources_[0].expr; }
  const Expr& y() const { return sources_[1].expr; }
  const Expr& z() const { return sources_[2].expr; }
  Expr infix(std::string_view token, Binds binds) const { return binary(x(), token, binds, y()); }
  Expr product() const { return binary(x(), "*", Binds::product, y()); }
  bool is_negation() const { return is_bool(sources_[0].dtype) && sources_[1].constant && sources_[1].constant->as_bool(); }

  /// `body` sees its operands as a and b and their type as {0}.
  Expr function(std::string_view what, const Expr& a, const Expr& b, std::string_view body) {
    const std::string function_name = fmt::format("{}_{}", what, type_);
    prelude_.function(function_name, fmt::format("fn {1}(a: {0}, b: {0}) -> {0} {{\n  {2}\n}}", type_, function_name,
                                                 fmt::format(fmt::runtime(body), type_)));
    return call(function_name, {a.text, b.text});
  }

  bool divides_by_known() const { return sources_[1].constant && !sources_[1].constant->is_zero(); }
  Expr quotient() {
    if (divides_by_known()) return infix("/", Binds::product);
    return function("quotient", x(), y(), "return select(a / select(b, {0}(1), b == {0}(0)), {0}(0), b == {0}(0));");
  }
  Expr remainder() {
    if (divides_by_known()) return infix("%", Binds::product);
    return function("remainder", x(), y(), "return a % select(b, {0}(1), b == {0}(0));");
  }

  /// A NaN wins, and 0.0 over -0.0.
  Expr maximum() {
    const auto decides = [](const Term& t) { return t.constant && !t.constant->is_nan() && !std::signbit(t.constant->as_double()); };
    // Against such a number only the other can be NaN, and equals are the same but for a zero's sign, where the number's is right.
    if (decides(sources_[1])) return at_least(x(), y());
    if (decides(sources_[0])) return at_least(y(), x());
    if (type_ == "f16") {
      const Term wide[] = {{call("f32", {x().text}), DType::float32}, {call("f32", {y().text}), DType::float32}};
      return call("f16", {Alu(prelude_, wide).maximum().text});
    }
    return function("maximum", x(), y(),
                    "let same = bitcast<f32>(bitcast<u32>(a) & bitcast<u32>(b));\n"
                    "  return select(select(select(a + b, same, a == b), b, a < b), a, a > b);");
  }
  Expr at_least(const Expr& v, const Expr& least) { return function("at_least", v, least, "return select(a, b, a <= b);"); }

  Expr amount() const { return is_unsigned(sources_[1].dtype) ? y() : call("u32", {y().text}); }
  std::optional<int64_t> known_amount() const {
    if (!sources_[1].constant) return {};
    const int64_t n = sources_[1].constant->as_int();
    return n < 0 || n > 31 ? 32 : n;
  }
  std::string zero() const { return is_unsigned(sources_[0].dtype) ? "0u" : "0"; }

  Expr shift_left() {
    if (const auto n = known_amount()) return *n == 32 ? Expr{zero()} : shift(x(), "<<", {fmt::format("{}u", *n)});
    const std::string f = fmt::format("shift_left_{}", type_);
    prelude_.function(f, fmt::format("fn {1}(a: {0}, n: u32) -> {0} {{\n  return select({0}(0), a << (n & 31u), n < 32u);\n}}", type_, f));
    return call(f, {x().text, amount().text});
  }
  Expr shift_right() {
    const bool is_logical = is_unsigned(sources_[0].dtype);
    if (const auto n = known_amount())
      return *n == 32 && is_logical ? Expr{zero()} : shift(x(), ">>", {fmt::format("{}u", std::min<int64_t>(*n, 31))});
    if (!is_logical) return shift(x(), ">>", call("min", {amount().text, "31u"}));
    prelude_.function("shift_right_u32", "fn shift_right_u32(a: u32, n: u32) -> u32 {\n  return select(0u, a >> (n & 31u), n < 32u);\n}");
    return call("shift_right_u32", {x().text, amount().text});
  }

  Prelude& prelude_;
  std::span<const Term> sources_;
  const std::string_view type_;
};

}  // namespace

Expr write_alu(Prelude& prelude, Op op, std::span<const Term> sources) { return Alu(prelude, sources).write(op); }

}  // namespace tinygrad::renderer::wgsl
