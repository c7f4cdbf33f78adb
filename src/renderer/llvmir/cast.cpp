#include <algorithm>

#include <fmt/core.h>

#include "renderer/llvmir/emitter.h"
#include "renderer/llvmir/vectors.h"

// Conversions by the rules of Scalar::cast. LLVM's own from float to integer is undefined out of range, so those are made from pieces
// that are defined everywhere.
namespace tinygrad::renderer::llvmir {
namespace {

class Cast {
 public:
  Cast(Emitter& out, const Value& x, DType to, bool is_small)
      : out_(out), x_(x), to_(to), is_small_(is_small), from_type_(type(x.dtype)), to_type_(type(to)) {}

  std::string emit() {
    if (is_bool(to_)) {
      return is_float(x_.dtype) ? line("fcmp une {} {}, {}", from_type_, x_.ref, real(0, x_.dtype))
                                : line("icmp ne {} {}, {}", from_type_, x_.ref, splat_literal(Scalar::from_int(0, x_.dtype), x_.lanes));
    }
    if (is_float(x_.dtype)) return is_float(to_) ? float_to_float() : float_to_int();
    if (is_float(to_)) return convert(is_signed(x_.dtype) ? "sitofp" : "uitofp");
    const int from = bitsize(x_.dtype), to = bitsize(to_);
    if (from == to) return x_.ref;
    return convert(from > to ? "trunc" : is_signed(x_.dtype) ? "sext" : "zext");
  }

 private:
  template <class... T>
  std::string line(fmt::format_string<T...> text, T&&... args) {
    return out_.define("cast", fmt::format(text, std::forward<T>(args)...));
  }
  std::string type(DType d) const { return type_name(d, x_.lanes); }
  std::string real(double value, DType d) const { return splat_literal(Scalar::from_double(value, d), x_.lanes); }
  std::string convert(std::string_view instruction) { return line("{} {} {} to {}", instruction, from_type_, x_.ref, to_type_); }
  std::string select(const std::string& condition, const std::string& yes, const std::string& no, const std::string& t) {
    return line("select {} {}, {} {}, {} {}", type(DType::bool_), condition, t, yes, t, no);
  }

  std::string float_to_float() {
    const int from = bitsize(x_.dtype), to = bitsize(to_);
    if (from == to) return x_.ref;
    if (to_ == DType::bfloat16) return to_bfloats();
    if (x_.dtype == DType::bfloat16) return from_bfloats();
    return convert(from > to ? "fptrunc" : "fpext");
  }

  /// By BFCVT of ARM, four lanes at a time. LLVM would make arithmetic on bfloats of its own conversions, which not all of its vectors
  /// have.
  std::string to_bfloats() {
    const std::string wide = typed(x_);
    if (x_.lanes == 1) return out_.call("cast", to_type_, "llvm.aarch64.neon.bfcvt", {wide});
    std::vector<std::string> parts;
    for (int64_t first = 0; first < x_.lanes; first += 4) {
      const std::string four = x_.lanes < 4 ? concatenated(out_, "float", std::vector<std::string>(2, x_.ref), 2)
                                            : run_of_lanes(out_, "float", x_.ref, x_.lanes, first, 4);
      const std::string eight = out_.call("cast", type_name(to_, 8), "llvm.aarch64.neon.bfcvtn", {type_name(x_.dtype, 4) + " " + four});
      parts.push_back(run_of_lanes(out_, "bfloat", eight, 8, 0, std::min(x_.lanes, 4)));
    }
    return concatenated(out_, "bfloat", parts, std::min(x_.lanes, 4));
  }
  std::string from_bfloats() {
    const std::string bits = line("bitcast {} {} to {}", from_type_, x_.ref, type(DType::uint16)), wide = type(DType::uint32);
    const std::string number = line("zext {} {} to {}", type(DType::uint16), bits, wide);
    const std::string high = line("shl {} {}, {}", wide, number, splat_literal(Scalar::from_uint(16, DType::uint32), x_.lanes));
    return line("bitcast {} {} to {}", wide, high, to_type_);
  }

  std::string float_to_int() {
    // Halves go through float, whose range they are well inside.
    DType d = x_.dtype;
    std::string x = x_.ref;
    if (d == DType::float16) {
      d = DType::float32;
      x = line("fpext {} {} to {}", from_type_, x, type(d));
    }
    if (x_.lanes > 1 && bitsize(to_) <= 32) return to_narrow_lanes(x, d);
    const std::string inside = within(x, d);
    const std::string safe = select(inside, x, real(0, d), type(d));
    if (to_ == DType::uint64) return to_uint64(x, d, inside, safe);
    const std::string wide = type(DType::int64);
    const std::string integer = select(inside, line("fptosi {} {} to {}", type(d), safe, wide), whole(INT64_MIN), wide);
    return bitsize(to_) == 64 ? integer : line("trunc {} {} to {}", wide, integer, to_type_);
  }

  /// From 2^63 up to 2^64: converts what is above 2^63 and adds it again. All else is as for int64.
  std::string to_uint64(const std::string& x, DType d, const std::string& inside, const std::string& safe) {
    const std::string t = type(d), wide = type(DType::int64);
    const std::string from63 = line("fcmp oge {} {}, {}", t, x, real(0x1p63, d));
    const std::string below64 = line("fcmp olt {} {}, {}", t, x, real(0x1p64, d));
    const std::string high = line("and {} {}, {}", type(DType::bool_), from63, below64);
    const std::string above = line("fsub {} {}, {}", t, x, real(0x1p63, d));
    const std::string integer = line("fptosi {} {} to {}", t, select(high, above, safe, t), wide);
    const std::string with_top = line("xor {} {}, {}", wide, integer, whole(INT64_MIN));
    return select(inside, integer, select(high, with_top, whole(INT64_MIN), wide), wide);
  }

  std::string whole(int64_t value) const { return splat_literal(Scalar::from_int(value, DType::int64), x_.lanes); }

  /// |x| < 2^63, false for NaN. -2^63 itself gives the same as what is outside.
  std::string within(const std::string& x, DType d) {
    const std::string t = type(d);
    const std::string magnitude = out_.call("cast", t, "llvm.fabs." + suffix(d, x_.lanes), {t + " " + x});
    return line("fcmp olt {} {}, {}", t, magnitude, real(0x1p63, d));
  }

  /// Vectors to at most 32 bits, where processors convert vectors to int32 only: the value modulo 2^32, as a float in [-2^31, 2^31), is
  /// exact.
  std::string to_narrow_lanes(const std::string& x, DType d) {
    const std::string t = type(d), of = suffix(d, x_.lanes);
    if (is_small_) return low_bits(select(line("fcmp ord {} {}, {}", t, x, real(0, d)), x, real(0, d), t), t);
    const std::string safe = select(within(x, d), x, real(0, d), t);
    const std::string cut = out_.call("cast", t, "llvm.trunc." + of, {t + " " + safe});
    const std::string turns = line("fmul {} {}, {}", t, cut, real(0x1p-32, d));
    const std::string full = out_.call("cast", t, "llvm.roundeven." + of, {t + " " + turns});
    const std::string rest = line("fsub {} {}, {}", t, cut, line("fmul {} {}, {}", t, full, real(0x1p32, d)));
    const std::string at_top = line("fcmp oge {} {}, {}", t, rest, real(0x1p31, d));
    return low_bits(select(at_top, real(-0x1p31, d), rest, t), t);
  }

  /// Of a float within int32.
  std::string low_bits(const std::string& x, const std::string& t) {
    const std::string integer = line("fptosi {} {} to {}", t, x, type(DType::int32));
    return bitsize(to_) == 32 ? integer : line("trunc {} {} to {}", type(DType::int32), integer, to_type_);
  }

  Emitter& out_;
  const Value& x_;
  const DType to_;
  const bool is_small_;
  const std::string from_type_, to_type_;
};

}  // namespace

Value emit_cast(Emitter& out, const Value& x, DType dtype, bool is_small) {
  return {.ref = x.dtype == dtype ? x.ref : Cast(out, x, dtype, is_small).emit(), .dtype = dtype, .lanes = x.lanes};
}

Value emit_bitcast(Emitter& out, const Value& x, DType dtype) {
  const std::string from = type_name(x.dtype, x.lanes), to = type_name(dtype, x.lanes);
  std::string ref = x.ref;
  if (is_bool(x.dtype) && !is_bool(dtype)) {
    ref = out.define("bitcast", fmt::format("zext {} {} to {}", from, x.ref, to));
  } else if (is_bool(dtype) && !is_bool(x.dtype)) {
    ref = out.define("bitcast", fmt::format("icmp ne {} {}, {}", from, x.ref, splat_literal(Scalar::from_int(0, x.dtype), x.lanes)));
  } else if (from != to) {
    ref = out.define("bitcast", fmt::format("bitcast {} {} to {}", from, x.ref, to));
  }
  return {.ref = std::move(ref), .dtype = dtype, .lanes = x.lanes};
}

}  // namespace tinygrad::renderer::llvmir
