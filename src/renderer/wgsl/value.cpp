#include "renderer/wgsl/value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tinygrad/errors.h>

namespace tinygrad::renderer::wgsl {

std::string_view Prelude::function(std::string_view name, std::string text) {
  if (known_.insert(std::string(name)).second) text_ += text + "\n";
  return name;
}

std::string Prelude::text() const { return (has_float16_ ? "enable f16;\n" : "") + text_; }

bool is_narrow(DType dtype) { return is_int(dtype) && bitsize(dtype) < 32; }

std::string_view type_of(Prelude& prelude, DType dtype) {
  switch (dtype) {
    case DType::bool_: return "bool";
    case DType::int8:
    case DType::int16:
    case DType::int32: return "i32";
    case DType::uint8:
    case DType::uint16:
    case DType::uint32: return "u32";
    case DType::float32: return "f32";
    case DType::float16: prelude.use_float16(); return "f16";
    default: break;
  }
  throw CompileError(fmt::format("WGSL has no {}; cast to one of float32, float16 and integers", repr(dtype)));
}

Expr call(std::string_view function, std::initializer_list<std::string_view> arguments) {
  return {fmt::format("{}({})", function, fmt::join(arguments, ", "))};
}

Expr select(const Expr& condition, const Expr& yes, const Expr& no) { return call("select", {no.text, yes.text, condition.text}); }

Expr differs(const Expr& x, const Expr& y, DType dtype) {
  if (!is_float(dtype)) return cstyle::binary(x, "!=", Binds::equality, y);
  return cstyle::prefixed("!", cstyle::binary(x, "==", Binds::equality, y));
}

Expr number(Prelude& prelude, const Scalar& value) {
  const DType d = value.dtype();
  const std::string_view type = type_of(prelude, d);
  if (is_bool(d)) return cstyle::literal(value, "");
  if (!is_float(d)) return cstyle::literal(value, is_unsigned(d) ? "u" : "");
  if (!value.is_nan() && !value.is_inf()) return cstyle::literal(value, d == DType::float16 ? "h" : "f");
  // WGSL refuses constants that are not finite: the bits go through a variable.
  const auto from_bits = [&](std::string_view name, std::string_view bits) {
    return prelude.function(name, fmt::format("fn {}() -> f32 {{\n  var bits = {};\n  return bitcast<f32>(bits);\n}}", name, bits));
  };
  const std::string_view name = value.is_nan() ? from_bits("not_a_number", "0x7fc00000u") : from_bits("infinity", "0x7f800000u");
  const Expr magnitude = call(name, {});
  const bool negative = !value.is_nan() && value.as_double() < 0;
  const Expr x = negative ? cstyle::prefixed("-", magnitude) : magnitude;
  return d == DType::float16 ? call(type, {x.text}) : x;
}

}  // namespace tinygrad::renderer::wgsl
