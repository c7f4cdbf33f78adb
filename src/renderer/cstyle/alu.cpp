#include <fmt/format.h>
#include <tinygrad/errors.h>

#include "renderer/cstyle/value.h"

// Every op is defined for every input (uop/ops.def), while C's division and shifts are not: those go through helper functions, which
// constant operands do without.
namespace tinygrad::renderer::cstyle {
namespace {

struct Operator {
  Op op;
  std::string_view token;
  Binds binds;
};

constexpr Operator kNumbers[] = {
    {Op::ADD, "+", Binds::sum},      {Op::SUB, "-", Binds::sum},         {Op::MUL, "*", Binds::product},
    {Op::FDIV, "/", Binds::product}, {Op::XOR, "^", Binds::bit_xor},     {Op::OR, "|", Binds::bit_or},
    {Op::AND, "&", Binds::bit_and},  {Op::CMPLT, "<", Binds::order},     {Op::CMPNE, "!=", Binds::equality},
    {Op::SHL, "<<", Binds::shift},   {Op::CMPEQ, "==", Binds::equality}, {Op::SHR, ">>", Binds::shift},
    {Op::CDIV, "/", Binds::product}, {Op::CMOD, "%", Binds::product},
};
constexpr Operator kBools[] = {
    {Op::ADD, "||", Binds::logic_or},  {Op::OR, "||", Binds::logic_or},    {Op::MAX, "||", Binds::logic_or},
    {Op::MUL, "&&", Binds::logic_and}, {Op::AND, "&&", Binds::logic_and},  {Op::SUB, "!=", Binds::equality},
    {Op::XOR, "!=", Binds::equality},  {Op::CMPNE, "!=", Binds::equality}, {Op::CMPEQ, "==", Binds::equality},
    {Op::CMPLT, "<", Binds::order},
};
// False is 0 and true is -1.
constexpr Operator kMasks[] = {
    {Op::ADD, "|", Binds::bit_or},  {Op::OR, "|", Binds::bit_or},       {Op::MAX, "|", Binds::bit_or},  {Op::MUL, "&", Binds::bit_and},
    {Op::AND, "&", Binds::bit_and}, {Op::SUB, "^", Binds::bit_xor},     {Op::XOR, "^", Binds::bit_xor}, {Op::CMPNE, "^", Binds::bit_xor},
    {Op::CMPLT, ">", Binds::order}, {Op::CMPEQ, "==", Binds::equality},
};

const Operator* find(std::span<const Operator> table, Op op) {
  for (const Operator& o : table)
    if (o.op == op) return &o;
  return nullptr;
}

/// Ops whose result in C's int may be one that a narrower type does not hold.
bool may_leave_type(Op op) { return op == Op::ADD || op == Op::SUB || op == Op::MUL || op == Op::SHL || op == Op::CDIV || op == Op::NEG; }

class Alu {
 public:
  Alu(Prelude& prelude, Op op, DType dtype, const std::vector<Value>& sources, bool exact)
      : prelude_(prelude),
        op_(op),
        dtype_(dtype),
        s_(sources),
        d_(sources[0].dtype),
        lanes_(sources[0].lanes),
        wraps_(!exact && !prelude.dialect().wraps && is_signed(d_) && bitsize(d_) >= 32) {}

  Value run() {
    if (op_ == Op::ADD && is_int_zero(s_[1])) return s_[0];
    if (op_ == Op::ADD && is_int_zero(s_[0])) return s_[1];
    if (wraps_ && is_sum()) return {.expr = wrapped_sum(), .dtype = dtype_, .lanes = lanes_};
    Value out{.expr = expression(), .dtype = dtype_, .lanes = lanes_};
    out.mask_bits = mask_bits_;
    out.inverse = inverse_;
    if (op_ == Op::NEG || (op_ == Op::MUL && is_minus_one(s_[1]))) out.negated = s_[0].expr;
    if (op_ == Op::ADD && added_ && !is_narrow_scalar()) {
      out.left_operand = s_[0].expr.text;
      out.rest = added_->text;
    }
    return out;
  }

 private:
  Expr expression() {
    switch (op_) {
      case Op::WHERE: return where();
      case Op::NEG: return is_bool(d_) ? s_[0].expr : narrowed(prefixed("-", s_[0].expr));
      case Op::RECIPROCAL: return binary(prelude_.literal(Scalar::from_int(1, d_)), "/", Binds::product, s_[0].expr);
      case Op::EXP2: return call(prelude_.word("exp2"), {s_[0].expr});
      case Op::LOG2: return call(prelude_.word("log2"), {s_[0].expr});
      case Op::SIN: return call(prelude_.word("sin"), {s_[0].expr});
      case Op::SQRT: return call(prelude_.word("sqrt"), {s_[0].expr});
      case Op::TRUNC: return is_float(d_) ? call(prelude_.word("trunc"), {s_[0].expr}) : s_[0].expr;
      case Op::MULACC: return multiply_add();
      case Op::MAX:
        if (!is_bool(d_)) return maximum();
        break;
      case Op::SHL:
      case Op::SHR:
        if (!s_[1].constant || s_[1].constant->as_uint() >= static_cast<uint64_t>(bitsize(d_))) return any_shift();
        break;
      case Op::CDIV:
      case Op::CMOD:
        if (!s_[1].constant || s_[1].constant->is_zero() || is_minus_one(s_[1])) return any_division();
        break;
      case Op::ADD:
        if (!is_bool(d_)) return sum();
        break;
      case Op::CMPNE:
        if (is_bool(d_) && s_[1].constant && s_[1].constant->as_bool()) return inverse();
        break;
      default: break;
    }
    return with_operator();
  }

  Expr with_operator() {
    const Operator* o = find(!is_bool(d_) ? std::span<const Operator>(kNumbers) : lanes_ == 1 ? kBools : kMasks, op_);
    if (!o) throw InternalError(fmt::format("C: {} must be decomposed before rendering", name(op_)));
    if (is_bool(d_) && lanes_ > 1) {
      mask_bits_ = common_bits();
      return binary(as_mask(prelude_, s_[0], mask_bits_), o->token, o->binds, as_mask(prelude_, s_[1], mask_bits_));
    }
    if (lanes_ > 1 && is_bool(dtype_)) mask_bits_ = bitsize(d_);
    if (o->binds == Binds::shift) return narrowed(binary(s_[0].expr, o->token, o->binds, {std::to_string(s_[1].constant->as_uint())}));
    const Expr a = beside_vector(0), b = beside_vector(1);
    if (op_ == Op::CMPLT && compares_by_call()) return less(s_[0].expr, s_[1].expr);
    if (op_ == Op::CMPLT && !is_float(d_)) inverse_ = binary(a, ">=", o->binds, b);
    if (op_ == Op::CMPNE) inverse_ = binary(a, "==", o->binds, b);
    if (op_ == Op::CMPEQ) inverse_ = binary(a, "!=", o->binds, b);
    return narrowed(binary(a, o->token, o->binds, b));
  }

  /// The bits of the masks: those of one that is no constant or splat, so that it need not be converted.
  int common_bits() const {
    for (const Value& v : s_)
      if (v.is_mask() && !v.splatted && !v.constant) return v.mask_bits;
    return s_[0].mask_bits;
  }

  /// A source, as a scalar where the other operand is a vector: C repeats it.
  Expr beside_vector(size_t i) const { return s_[i].splatted && !s_[1 - i].splatted ? *s_[i].splatted : s_[i].expr; }

  static bool is_int_zero(const Value& v) { return v.constant && is_int(v.dtype) && v.constant->is_zero(); }
  bool is_minus_one(const Value& v) const { return v.constant && is_signed(d_) && *v.constant == Scalar::from_int(-1, d_); }
  bool is_narrow_scalar() const { return lanes_ == 1 && is_int(d_) && bitsize(d_) < 32; }
  Expr narrowed(Expr x) {
    if (!is_narrow_scalar() || !may_leave_type(op_)) return x;
    return prefixed(fmt::format("({})", type()), x);
  }

  std::string type() { return prelude_.type(d_, lanes_); }
  std::string signed_type(int bits) { return prelude_.type(signed_of_bits(bits), lanes_); }

  static Expr call(std::string_view function, std::initializer_list<Expr> arguments) {
    std::string text(function);
    char separator = '(';
    for (const Expr& a : arguments) {
      text += separator;
      if (separator == ',') text += ' ';
      text += a.text;
      separator = ',';
    }
    return {text + ")"};
  }

  std::string helper(std::string_view name) { return prelude_.helper_name(name, type()); }

  bool is_sum() const { return op_ == Op::ADD || op_ == Op::SUB || op_ == Op::MUL || op_ == Op::NEG || op_ == Op::MULACC; }

  /// Of signed integers as C's unsigned ones, which wrap around.
  Expr wrapped_sum() {
    const std::string u = fmt::format("({})", prelude_.type(unsigned_of(d_)));
    const auto part = [&](size_t i) {
      return s_[i].constant ? prelude_.literal(s_[i].constant->cast(unsigned_of(d_))) : prefixed(u, s_[i].expr);
    };
    const Expr a = part(0);
    Expr sum;
    switch (op_) {
      case Op::NEG: sum = binary({"0"}, "-", Binds::sum, a); break;
      case Op::MUL: sum = binary(a, "*", Binds::product, part(1)); break;
      case Op::MULACC: sum = binary(binary(a, "*", Binds::product, part(1)), "+", Binds::sum, part(2)); break;
      default: sum = binary(a, op_ == Op::ADD ? "+" : "-", Binds::sum, part(1));
    }
    return prefixed(fmt::format("({})", type()), sum);
  }

  /// a + -b is a - b.
  Expr sum() {
    for (size_t i : {1u, 0u})
      if (s_[i].negated) return narrowed(binary(s_[1 - i].expr, "-", Binds::sum, *s_[i].negated));
    const Scalar* c = s_[1].constant ? &*s_[1].constant : nullptr;
    if (c && is_signed(d_) && c->as_int() < 0 && *c != min_value(d_)) {
      return narrowed(binary(s_[0].expr, "-", Binds::sum, prelude_.literal(Scalar::from_int(-c->as_int(), d_))));
    }
    added_ = beside_vector(1);
    return with_operator();
  }

  Expr inverse() {
    mask_bits_ = s_[0].mask_bits;
    if (s_[0].inverse) return *s_[0].inverse;
    if (lanes_ == 1) return prefixed("!", s_[0].expr);
    return prefixed("~", s_[0].expr);
  }

  Expr multiply_add() {
    if (is_bool(d_)) {
      Value product{.expr = {}, .dtype = d_, .lanes = lanes_};
      product = write_alu(prelude_, Op::AND, d_, {s_[0], s_[1]}, true);
      Value all = write_alu(prelude_, Op::OR, d_, {product, s_[2]}, true);
      mask_bits_ = all.mask_bits;
      return all.expr;
    }
    if (prelude_.dialect().calls_fma && lanes_ == 1 && (d_ == DType::float32 || d_ == DType::float64))
      return call("fma", {s_[0].expr, s_[1].expr, s_[2].expr});
    // The compiler fuses what stands in one expression, where the processor can.
    Expr product = binary(s_[0].expr, "*", Binds::product, beside_vector(1));
    Expr result = binary(product, "+", Binds::sum, s_[2].expr);
    return is_narrow_scalar() ? prefixed(fmt::format("({})", type()), result) : result;
  }

  Expr where() {
    const Value &yes = s_[1], &no = s_[2];
    if (lanes_ == 1) return choice(s_[0].expr, yes.expr, no.expr);
    if (is_bool(dtype_)) {
      mask_bits_ = common_bits();
      return choice(as_mask(prelude_, s_[0], mask_bits_), as_mask(prelude_, yes, mask_bits_), as_mask(prelude_, no, mask_bits_));
    }
    if (s_[0].splatted) return choice(*s_[0].splatted, yes.expr, no.expr);
    const Expr condition = as_mask(prelude_, s_[0], bitsize(dtype_));
    if (no.splatted && !yes.splatted) return choice(condition, yes.expr, *no.splatted);
    if (yes.splatted && !no.splatted) return choice(condition, *yes.splatted, no.expr);
    return choice(condition, yes.expr, no.expr);
  }

  bool compares_by_call() const { return prelude_.dialect().less && (d_ == DType::float32 || d_ == DType::float64); }

  /// As the dialect has it, of each lane.
  Expr less(const Expr& a, const Expr& b) {
    if (lanes_ == 1) return prelude_.dialect().less(prelude_, d_, a, b);
    const std::string mask = signed_type(bitsize(d_));
    prelude_.function(fmt::format("{0} {1}({2} a, {2} b) {{\n  {0} m;\n  for (int i = 0; i < {3}; ++i) m[i] = -{4};\n  return m;\n}}", mask,
                                  helper("less_lanes"), type(), lanes_, prelude_.dialect().less(prelude_, d_, {"a[i]"}, {"b[i]"}).text));
    return call(helper("less_lanes"), {a, b});
  }

  Expr maximum() {
    const std::string t = type();
    if (!is_float(d_)) {
      if (prelude_.dialect().overloads) return call(prelude_.word("max"), {s_[0].expr, s_[1].expr});
      prelude_.function(fmt::format("{0} {1}({0} a, {0} b) {{ return a < b ? b : a; }}", t, helper("larger")));
      return call(helper("larger"), {s_[0].expr, s_[1].expr});
    }
    for (size_t i : {1u, 0u}) {
      const auto& c = s_[i].constant;
      if (!c || c->is_nan() || (c->is_zero() && !c->is_positive_zero()) || compares_by_call()) continue;
      prelude_.function(fmt::format("{0} {1}({0} x, {0} least) {{ return x <= least ? least : x; }}", t, helper("at_least")));
      return call(helper("at_least"), {s_[1 - i].expr, s_[i].expr});
    }
    const std::string is_negative =
        lanes_ == 1 ? fmt::format("{}(a)", prelude_.word("signbit")) : fmt::format("({})a", signed_type(bitsize(d_)));
    prelude_.function(
        fmt::format("{0} {2}({0} a, {0} b) {{  // a NaN wins, and 0 is more than -0\n"
                    "  {0} x = {1} ? b : a, y = {1} ? a : b;\n  return y != y ? y : {3} ? y : x;\n}}",
                    t, is_negative, helper("maximum"), compares_by_call() ? less({"x"}, {"y"}).text : "y > x"));
    return call(helper("maximum"), {s_[0].expr, s_[1].expr});
  }

  /// An amount of the width or more, or a negative one, shifts everything out.
  Expr any_shift() {
    const DType amount = s_[1].dtype, key = static_cast<DType>(unsigned_of(amount));
    const int width = bitsize(d_);
    const std::string x = type(), n = prelude_.type(amount, lanes_), u = prelude_.type(key, lanes_);
    const bool left = op_ == Op::SHL;
    std::string inside = fmt::format("({})n < {}", u, width), by = fmt::format("(n & {})", width - 1);
    if (lanes_ > 1 && bitsize(amount) != width) {
      const std::string_view convert = prelude_.word("convert");
      inside = fmt::format("{}({}, {})", convert, inside, signed_type(width));
      by = fmt::format("{}({}, {})", convert, by, x);
    } else if (lanes_ > 1) {
      by = fmt::format("({}){}", x, by);
    }
    const std::string outside = left || is_unsigned(d_) ? "0" : fmt::format("x >> {}", width - 1);
    const std::string function = shift_name(left ? "shift_left" : "shift_right", n);
    prelude_.function(
        fmt::format("{0} {1}({0} x, {2} n) {{ return {3} ? x {4} {5} : {6}; }}", x, function, n, inside, left ? "<<" : ">>", by, outside));
    return call(function, {s_[0].expr, s_[1].expr});
  }

  /// Two types tell one from another.
  std::string shift_name(std::string_view name, std::string_view amount) { return prelude_.helper_name(helper(name), amount); }

  static DType unsigned_of(DType d) {
    switch (bitsize(d)) {
      case 8: return DType::uint8;
      case 16: return DType::uint16;
      case 32: return DType::uint32;
      default: return DType::uint64;
    }
  }

  /// By zero: 0. The least integer by -1 wraps.
  Expr any_division() {
    const bool quotient = op_ == Op::CDIV;
    const std::string t = type();
    const std::string function = helper(quotient ? "quotient" : "remainder"), token = quotient ? "/" : "%";
    if (is_unsigned(d_)) {
      prelude_.function(fmt::format("{0} {1}({0} a, {0} b) {{ return b == 0 ? 0 : a {2} (b == 0 ? 1 : b); }}", t, function, token));
    } else if (quotient) {
      prelude_.function(
          fmt::format("{0} {1}({0} a, {0} b) {{\n"
                      "  return b == 0 ? 0 : b == -1 ? {2} : a / ((b == 0) | (b == -1) ? 1 : b);\n}}",
                      t, function, prelude_.dialect().wraps ? "-a" : fmt::format("({})(0 - ({})a)", t, prelude_.type(unsigned_of(d_)))));
    } else {
      prelude_.function(fmt::format("{0} {1}({0} a, {0} b) {{ return a % ((b == 0) | (b == -1) ? 1 : b); }}", t, function));
    }
    return call(function, {s_[0].expr, s_[1].expr});
  }

  Prelude& prelude_;
  const Op op_;
  const DType dtype_;
  const std::vector<Value>& s_;
  const DType d_;
  const int lanes_;
  const bool wraps_;  // what overflows must be computed so that it wraps around
  int mask_bits_ = 0;
  std::optional<Expr> added_, inverse_;
};

}  // namespace

Value write_alu(Prelude& prelude, Op op, DType dtype, const std::vector<Value>& sources, bool exact) {
  for (const Value& v : sources) {
    if (v.lanes != sources[0].lanes) {
      throw InternalError(fmt::format("C: {} of {} and {} lanes: sources must have one width", name(op), sources[0].lanes, v.lanes));
    }
  }
  return Alu(prelude, op, dtype, sources, exact).run();
}

}  // namespace tinygrad::renderer::cstyle
