#include <fmt/format.h>

#include "renderer/cstyle/value.h"

// Conversions by the rules of Scalar::cast. C's own from float to integer is undefined out of range, so those are made from pieces that are
// defined everywhere.
namespace tinygrad::renderer::cstyle {

DType signed_of_bits(int bits) {
  switch (bits) {
    case 8: return DType::int8;
    case 16: return DType::int16;
    case 32: return DType::int32;
    default: return DType::int64;
  }
}

Expr convert(Prelude& prelude, const Expr& x, DType to, int lanes) {
  return {fmt::format("{}({}, {})", prelude.word("convert"), x.text, prelude.type(to, lanes))};
}

Value splat(Prelude& prelude, const Value& x, int lanes) {
  Value out{.expr = {}, .dtype = x.dtype, .lanes = lanes, .constant = x.constant, .splatted = x.expr};
  if (is_bool(x.dtype)) {
    out.mask_bits = 8;
    out.expr = as_mask(prelude, out, 8);
  } else {
    out.expr = prefixed(fmt::format("({})", prelude.type(x.dtype, lanes)), x.expr);
  }
  return out;
}

Expr as_mask(Prelude& prelude, const Value& mask, int bits) {
  const DType element = signed_of_bits(bits);
  const std::string type = prelude.type(element, mask.lanes);
  if (mask.constant) return {fmt::format("({}){}", type, mask.constant->as_bool() ? "(-1)" : "0"), Binds::unary};
  if (mask.splatted) return {fmt::format("({})(-{})", type, atom(*mask.splatted)), Binds::unary};
  return mask.mask_bits == bits ? mask.expr : convert(prelude, mask.expr, element, mask.lanes);
}

namespace {

class Cast {
 public:
  Cast(Prelude& prelude, const Value& x, DType to) : prelude_(prelude), x_(x), from_(x.dtype), to_(to), lanes_(x.lanes) {}

  Value run() {
    Value out{.expr = {}, .dtype = to_, .lanes = lanes_};
    if (is_bool(to_)) {
      out.mask_bits = lanes_ > 1 ? bitsize(from_) : 0;
      out.expr = binary(x_.expr, "!=", Binds::equality, {"0"});
    } else if (x_.is_mask()) {
      // 1, not -1; in an integer of the mask's width, which converts exactly.
      out.expr = to_type(prefixed("-", x_.expr), signed_of_bits(x_.mask_bits));
    } else if (is_float(from_) && is_int(to_)) {
      out.expr = lanes_ > 1 && bitsize(to_) <= 32 ? lanes_to_narrow() : to_integer();
    } else {
      out.expr = to_type(x_.expr, from_);
    }
    return out;
  }

 private:
  std::string type(DType d) { return prelude_.type(d, lanes_); }
  Expr to_type(const Expr& x, DType from) { return converted(x, from, to_); }
  Expr converted(const Expr& x, DType from, DType to) {
    if (from == to) return x;
    const bool reads_bits = is_int(from) && is_int(to) && bitsize(from) == bitsize(to);
    if (lanes_ > 1 && !reads_bits) return convert(prelude_, x, to, lanes_);
    if (const auto special = prelude_.dialect().cast) {
      if (std::string text = special(prelude_, x.text, from, to); !text.empty()) return {std::move(text)};
    }
    return prefixed(fmt::format("({})", type(to)), x);
  }
  std::string float_literal(double value, DType d) { return prelude_.literal(Scalar::from_double(value, d)).text; }

  /// Halves go through float, whose range they are well inside.
  std::pair<Expr, DType> widened() {
    if (bitsize(from_) >= 32) return {x_.expr, from_};
    return {converted(x_.expr, from_, DType::float32), DType::float32};
  }

  Expr to_integer() {
    const auto [x, d] = widened();
    need_to_long(d);
    if (to_ == DType::uint64) {
      need_to_ulong(d);
      return {fmt::format("{}({})", name("to_ulong", d), x.text)};
    }
    return to_type({fmt::format("{}({})", name("to_long", d), x.text)}, DType::int64);
  }

  std::string name(std::string_view helper, DType from) { return prelude_.helper_name(helper, type(from)); }

  /// What no long holds becomes the least of them.
  void need_to_long(DType d) {
    const std::string t = type(d), bound = float_literal(0x1p63, d);
    const std::string_view least = prelude_.word("LONG_MIN"), abs = prelude_.word("abs");
    if (lanes_ == 1) {
      prelude_.function(fmt::format("{0} {1}({2} x) {{ return {3}(x) < {4} ? ({0})x : {5}; }}", type(DType::int64), name("to_long", d), t,
                                    abs, bound, least));
      return;
    }
    const std::string wide = type(DType::int64), mask = type(signed_of_bits(bitsize(d)));
    const std::string_view convert = prelude_.word("convert");
    prelude_.function(
        fmt::format("{0} to_long({1} x) {{\n  {2} inside = {3}(x) < {4};\n"
                    "  return {5}(inside, {0}) ? {5}(inside ? x : 0, {0}) : {6};\n}}",
                    wide, t, mask, abs, bound, convert, least));
  }

  /// From 2^63 up to 2^64: converts what is above 2^63 and adds it again. All else is as for long.
  void need_to_ulong(DType d) {
    const std::string t = type(d), wide = type(DType::uint64), low = float_literal(0x1p63, d), high = float_literal(0x1p64, d);
    if (lanes_ == 1) {
      prelude_.function(fmt::format("{0} {1}({2} x) {{ return x >= {3} && x < {4} ? ({0})x : ({0}){5}(x); }}", type(DType::uint64),
                                    name("to_ulong", d), t, low, high, name("to_long", d)));
      return;
    }
    const std::string mask = type(signed_of_bits(bitsize(d))), whole = type(DType::int64);
    prelude_.function(
        fmt::format("{0} to_ulong({1} x) {{\n  {2} large = (x >= {3}) & (x < {4});\n"
                    "  return ({0})({5}(large, {6}) ? {5}(large ? x - {3} : 0, {6}) ^ {7} : to_long(x));\n}}",
                    wide, t, mask, low, high, prelude_.word("convert"), whole, prelude_.word("LONG_MIN")));
  }

  /// Vectors to at most 32 bits, where processors convert vectors to int only: the value modulo 2^32, as a float in [-2^31, 2^31), is
  /// exact.
  Expr lanes_to_narrow() {
    const auto [x, d] = widened();
    const std::string t = type(d), integer = type(DType::int32);
    const auto num = [&, dtype = d](double v) { return float_literal(v, dtype); };
    prelude_.function(
        fmt::format("{0} to_int({1} x) {{\n  {1} cut = {2}({3}(x) < {4} ? x : 0);\n  {1} rest = cut - {5}(cut * {6}) * {7};\n"
                    "  return {8}(rest >= {9} ? {10} : rest, {0});\n}}",
                    integer, t, prelude_.word("trunc"), prelude_.word("abs"), num(0x1p63), prelude_.word("rint"), num(0x1p-32), num(0x1p32),
                    prelude_.word("convert"), num(0x1p31), num(-0x1p31)));
    return to_type({fmt::format("to_int({})", x.text)}, DType::int32);
  }

  Prelude& prelude_;
  const Value& x_;
  const DType from_, to_;
  const int lanes_;
};

}  // namespace

Value write_cast(Prelude& prelude, const Value& x, DType dtype) {
  if (x.dtype == dtype) return x;
  const auto only_converts = prelude.dialect().only_converts;
  const bool through_float = only_converts && (only_converts(x.dtype) || only_converts(dtype)) && x.dtype != DType::float32;
  if (through_float && dtype != DType::float32) return write_cast(prelude, write_cast(prelude, x, DType::float32), dtype);
  return Cast(prelude, x, dtype).run();
}

Value write_bitcast(Prelude& prelude, const Value& x, DType dtype) {
  if (x.dtype == dtype) return x;
  Value out{.expr = {}, .dtype = dtype, .lanes = x.lanes};
  if (is_bool(x.dtype) || is_bool(dtype) || (is_int(x.dtype) && is_int(dtype))) return write_cast(prelude, x, dtype);
  out.expr = x.lanes > 1 ? prefixed(fmt::format("({})", prelude.type(dtype, x.lanes)), x.expr)
                         : Expr{prelude.dialect().bits(prelude, x.expr.text, x.dtype, dtype)};
  return out;
}

}  // namespace tinygrad::renderer::cstyle
