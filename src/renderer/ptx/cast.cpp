#include <fmt/format.h>
#include <tinygrad/errors.h>

#include "renderer/ptx/emitter.h"

// Conversions by the rules of Scalar::cast. PTX's own from float to integer saturate, and its own to 8 bits too.
namespace tinygrad::renderer::ptx {
namespace {

class Cast {
 public:
  Cast(Emitter& out, const Operand& x, DType to) : out_(out), x_(out.in_register(x)), from_(x.dtype), to_(to) {}

  std::string run() {
    if (from_ == to_) return x_;
    if (is_bool(to_)) return to_bool();
    if (is_bool(from_)) return from_bool();
    if (is_float(from_)) return is_float(to_) ? float_to_float() : float_to_int();
    if (only_converts(to_)) return through(DType::float32);
    return is_float(to_) ? convert("cvt.rn.{0}.{1}") : int_to_int();
  }

 private:
  std::string number(double value, DType d) const { return literal(Scalar::from_double(value, d)); }
  std::string convert(fmt::format_string<std::string_view, std::string_view> instruction) {
    return out_.define(to_, fmt::format(instruction, type_name(to_), type_name(from_)), x_);
  }
  /// A conversion of something else on the way.
  std::string cast(const std::string& x, DType from, DType to) { return Cast(out_, {.text = x, .dtype = from}, to).run(); }
  std::string through(DType middle) { return cast(cast(x_, from_, middle), middle, to_); }

  std::string to_bool() {
    if (is_float(from_) && kind_of(from_) == RegisterKind::bits16) return through(DType::float32);
    if (is_float(from_)) return out_.define(to_, fmt::format("setp.neu.{}", type_name(from_)), fmt::format("{}, {}", x_, number(0, from_)));
    return out_.define(to_, fmt::format("setp.ne.{}", bits_name(from_)), x_ + ", 0");
  }

  std::string from_bool() {
    if (is_float(to_) && kind_of(to_) == RegisterKind::bits16) {
      const std::string one = out_.constant(Scalar::from_int(1, to_)), zero = out_.constant(Scalar::from_int(0, to_));
      return out_.define(to_, "selp.b16", fmt::format("{}, {}, {}", one, zero, x_));
    }
    const std::string_view type = is_float(to_) ? type_name(to_) : bits_name(to_);
    const auto digit = [&](int n) { return literal(Scalar::from_int(n, to_)); };
    return out_.define(to_, fmt::format("selp.{}", type), fmt::format("{}, {}, {}", digit(1), digit(0), x_));
  }

  // Floats of 8 bits, and bfloat16, are converted from and to float32 only.

  static bool only_converts(DType d) { return is_fp8(d) || d == DType::bfloat16; }

  std::string float_to_float() {
    if (only_converts(from_)) return to_ == DType::float32 ? widened() : through(DType::float32);
    if (only_converts(to_)) return from_ == DType::float32 ? narrowed() : through(DType::float32);
    return bitsize(from_) > bitsize(to_) ? convert("cvt.rn.{0}.{1}") : convert("cvt.{0}.{1}");
  }

  std::string widened() {
    if (from_ == DType::bfloat16) {
      const std::string zero = out_.constant(Scalar::from_int(0, DType::uint16));
      return out_.define(to_, "mov.b32", fmt::format("{{{}, {}}}", zero, x_));
    }
    const std::string pair = out_.define(DType::uint32, fmt::format("cvt.rn.f16x2.{}x2", fp8_name(from_)), x_);
    return out_.define(to_, "cvt.f32.f16", out_.define(DType::float16, "cvt.u16.u32", pair));
  }

  std::string narrowed() {
    if (to_ == DType::bfloat16) return out_.define(to_, "cvt.rn.bf16.f32", x_);
    // What is at least half a step beyond the largest number, and no NaN, which the instruction knows.
    const bool has_infinity = to_ == DType::fp8e5m2;
    const std::string saturated = out_.define(to_, fmt::format("cvt.rn.satfinite.{}x2.f32", fp8_name(to_)), number(0, from_) + ", " + x_);
    const std::string magnitude = out_.define(from_, "abs.f32", x_);
    const std::string beyond = out_.define(DType::bool_, has_infinity ? "setp.ge.f32" : "setp.gt.f32",
                                           fmt::format("{}, {}", magnitude, number(has_infinity ? 61440 : 464, from_)));
    const std::string sign = out_.define(DType::uint16, "and.b16", saturated + ", 128");
    const std::string other = out_.define(DType::uint16, "or.b16", fmt::format("{}, {}", sign, has_infinity ? 0x7c : 0x7f));
    return out_.define(to_, "selp.b16", fmt::format("{}, {}, {}", other, saturated, beyond));
  }
  static std::string_view fp8_name(DType d) { return d == DType::fp8e4m3 ? "e4m3" : "e5m2"; }

  std::string float_to_int() {
    if (kind_of(from_) == RegisterKind::bits16) return through(DType::float32);
    const std::string_view type = type_name(from_);
    const std::string magnitude = out_.define(from_, fmt::format("abs.{}", type), x_);
    const auto compare = [&](std::string_view how, const std::string& x, double bound) {
      return out_.define(DType::bool_, fmt::format("setp.{}.{}", how, type), fmt::format("{}, {}", x, number(bound, from_)));
    };
    const std::string least = literal(Scalar::from_int(INT64_MIN, DType::int64)), inside = compare("lt", magnitude, 0x1p63);
    const std::string near = out_.define(DType::int64, fmt::format("cvt.rzi.s64.{}", type), x_);
    std::string wide = out_.define(DType::int64, "selp.b64", fmt::format("{}, {}, {}", near, least, inside));
    if (to_ == DType::uint64) {
      const std::string large = out_.define(DType::bool_, "and.pred", compare("ge", x_, 0x1p63) + ", " + compare("lt", x_, 0x1p64));
      const std::string all = out_.define(to_, fmt::format("cvt.rzi.u64.{}", type), x_);
      return out_.define(to_, "selp.b64", fmt::format("{}, {}, {}", all, wide, large));
    }
    return cast(wide, DType::int64, to_);
  }

  /// Through a register of 16 bits, what is narrower or wider than 8 bits keeps its value.
  std::string int_to_int() {
    std::string x = x_;
    const RegisterKind kind = kind_of(to_);
    if (kind != kind_of(from_)) x = convert_width(kind);
    if (bitsize(to_) != 8 || (bitsize(from_) == 8 && is_signed(from_) == is_signed(to_))) return x;
    return to_ == DType::int8 ? out_.define(to_, "cvt.s16.s8", x) : out_.define(to_, "and.b16", x + ", 255");
  }
  std::string convert_width(RegisterKind kind) {
    const std::string_view width = kind == RegisterKind::bits16 ? "16" : kind == RegisterKind::bits32 ? "32" : "64";
    const std::string_view sign = is_signed(from_) ? "s" : "u";
    return out_.define(to_, fmt::format("cvt.{}{}.{}", sign, width, type_name(from_)), x_);
  }

  Emitter& out_;
  const std::string x_;
  const DType from_, to_;
};

}  // namespace

std::string emit_cast(Emitter& out, const Operand& x, DType dtype) { return Cast(out, x, dtype).run(); }

std::string emit_bitcast(Emitter& out, const Operand& x, DType dtype) {
  if (is_bool(x.dtype) || is_bool(dtype)) return emit_cast(out, x, dtype);
  std::string from = out.in_register(x);
  if (kind_of(x.dtype) != kind_of(dtype)) return out.define(dtype, fmt::format("mov.{}", bits_name(dtype)), from);
  // How a register of 16 bits holds 8 depends on the sign.
  if (dtype == DType::int8 && x.dtype != DType::int8) return out.define(dtype, "cvt.s16.s8", from);
  if (bitsize(dtype) == 8 && x.dtype == DType::int8) return out.define(dtype, "and.b16", from + ", 255");
  return from;
}

}  // namespace tinygrad::renderer::ptx
