// Conversions by the rules of Scalar::cast.
#include <fmt/format.h>

#include "renderer/wgsl/value.h"

namespace tinygrad::renderer::wgsl {

namespace {

/// The value modulo 2^32 as a float in [-2^31, 2^31), which is exact; what no int64 holds is 0.
constexpr std::string_view kToInt = R"(fn to_int(x: f32) -> i32 {
  let cut = trunc(select(0.0f, x, abs(x) < 9223372036854775808.0f));
  let rest = cut - round(cut * 0.00000000023283064365386962890625f) * 4294967296.0f;
  return i32(select(rest, -2147483648.0f, rest >= 2147483648.0f));
})";

/// An integer in its low bits, with the sign or zeros above.
Expr cut(const Expr& x, DType to) { return call("extractBits", {x.text, "0u", fmt::format("{}u", bitsize(to))}); }

Expr to_integer(Prelude& prelude, const Term& x, DType to) {
  const std::string_view type = type_of(prelude, to);
  if (is_bool(x.dtype)) return select(x.expr, {is_unsigned(to) ? "1u" : "1"}, {is_unsigned(to) ? "0u" : "0"});
  if (is_float(x.dtype)) {
    const Expr wide = x.dtype == DType::float16 ? call("f32", {x.expr.text}) : x.expr;
    const Expr whole = call(prelude.function("to_int", std::string(kToInt)), {wide.text});
    return is_unsigned(to) ? call(type, {whole.text}) : whole;
  }
  return type == type_of(prelude, x.dtype) ? x.expr : call(type, {x.expr.text});
}

}  // namespace

Expr write_cast(Prelude& prelude, const Term& x, DType to) {
  if (x.dtype == to) return x.expr;
  const std::string_view type = type_of(prelude, to);
  if (is_bool(to)) return differs(x.expr, number(prelude, Scalar::from_int(0, x.dtype)), x.dtype);
  if (is_float(to)) {
    if (!is_bool(x.dtype)) return call(type, {x.expr.text});
    return select(x.expr, number(prelude, Scalar::from_int(1, to)), number(prelude, Scalar::from_int(0, to)));
  }
  const Expr whole = to_integer(prelude, x, to);
  return is_narrow(to) && !can_lossless_cast(x.dtype, to) ? cut(whole, to) : whole;
}

Expr write_bitcast(Prelude& prelude, const Term& x, DType to) {
  if (x.dtype == to || (is_bool(x.dtype) && is_bool(to))) return x.expr;
  if (is_bool(x.dtype) || is_bool(to) || (is_int(x.dtype) && is_int(to))) return write_cast(prelude, x, to);
  const std::string_view type = type_of(prelude, to);
  // The bits of a half are the lower part of a word.
  if (x.dtype == DType::float16) {
    const Expr word = call("pack2x16float", {fmt::format("vec2<f32>(f32({}), 0.0f)", x.expr.text)});
    return is_unsigned(to) ? word : cut(call("i32", {word.text}), to);
  }
  if (to == DType::float16) {
    const Expr word = is_unsigned(x.dtype) ? x.expr : call("u32", {x.expr.text});
    return call(type, {call("unpack2x16float", {word.text}).text + ".x"});
  }
  return call(fmt::format("bitcast<{}>", type), {x.expr.text});
}

}  // namespace tinygrad::renderer::wgsl
