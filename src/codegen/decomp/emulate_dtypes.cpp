#include "codegen/decomp/emulate_dtypes.h"

#include <cmath>
#include <limits>

#include <fmt/core.h>

#include <tinygrad/errors.h>

#include "codegen/decomp/long_ops.h"
#include "codegen/rebuild.h"
#include "dtype/float_format.h"
#include "uop/build.h"

namespace tinygrad::codegen {

namespace {

DType storage_of(DType d) { return itemsize(d) == 1 ? DType::uint8 : DType::uint16; }

UOp u32(uint64_t value) { return constant(Scalar::from_uint(value, DType::uint32)); }
UOp f32(double value) { return constant(DType::float32, value); }
UOp as_bits(const UOp& x) { return bitcast(x, DType::uint32); }
UOp as_float(const UOp& x) { return bitcast(x, DType::float32); }

constexpr uint64_t float32_sign = 0x80000000, float32_infinity = 0x7f800000;

}  // namespace

UOp encode_float(const UOp& x, DType to) {
  const FloatFormat f = format_of(to);
  const int shift = 23 - f.mantissa_bits, bias_change = 127 - f.bias();
  const UOp bits = as_bits(x), magnitude = bits & u32(~float32_sign & 0xffffffff), sign = bits & u32(float32_sign);
  // Rounding is an addition to the bits: a carry goes into the exponent where it must.
  UOp out = (magnitude + u32((uint64_t{1} << (shift - 1)) - 1) + ((magnitude >> u32(uint64_t(shift))) & u32(1))) >> u32(uint64_t(shift));
  if (bias_change != 0) {
    out = out - u32(uint64_t(bias_change) << f.mantissa_bits);
    // Below the normal numbers, adding a number whose last place is the least subnormal rounds and aligns at once.
    const double aligner = std::ldexp(1.0, 23 + 1 - f.bias() - f.mantissa_bits);
    const UOp subnormal = as_bits(as_float(magnitude) + f32(aligner)) - as_bits(f32(aligner));
    out = where(magnitude < u32(uint64_t(bias_change + 1) << 23), subnormal, out);
    const uint64_t beyond = f.has_infinity ? f.first_non_finite() : f.nan;
    out = where(out < u32(f.first_non_finite()), out, u32(beyond));
    // Large exponents wrapped above.
    out = where(magnitude < u32(uint64_t(127 + f.bias() + 2) << 23), out, u32(beyond));
  }
  out = where(u32(float32_infinity) < magnitude, u32(f.nan), out);
  const UOp with_sign = out | (sign >> u32(uint64_t(31 - f.sign_bit())));
  return f.fnuz ? where(eq(out, u32(0)), out, with_sign) : with_sign;
}

UOp decode_float(const UOp& bits, DType from) {
  const FloatFormat f = format_of(from);
  const int shift = 23 - f.mantissa_bits, bias_change = 127 - f.bias();
  // The upper half of a float32, a NaN's too.
  if (bias_change == 0 && f.has_infinity && f.sign_bit() + shift == 31) return as_float(bits << u32(uint64_t(shift)));
  const UOp magnitude = bits & u32(f.magnitude_mask()), sign = (bits & u32(uint64_t{1} << f.sign_bit()))
                                                               << u32(uint64_t(31 - f.sign_bit()));
  UOp value = magnitude << u32(uint64_t(shift));
  if (bias_change != 0) {
    // The product is exact, for subnormal numbers too.
    value = as_bits(as_float(value) * f32(std::ldexp(1.0, bias_change)));
    if (f.has_infinity) value = where(eq(magnitude, u32(f.first_non_finite())), u32(float32_infinity), value);
  }
  if (f.fnuz) return as_float(where(eq(bits, u32(f.nan)), u32(formats::float32.nan), value | sign));
  const uint64_t first_nan = f.first_non_finite() + (f.has_infinity ? 1 : 0);
  value = where(magnitude < u32(first_nan), value, u32(formats::float32.nan));
  return as_float(value | sign);
}

namespace {

/// float64 to float32 such that rounding further to at most 22 bits gives what rounding once would: an inexact result gets an odd last
/// bit ("round to odd"; Boldo and Melquiond, "When double rounding is odd", 2005).
UOp round_to_odd(const UOp& x) {
  const auto magnitude = [](const UOp& v) { return max(v, -v); };
  const UOp near = cast(x, DType::float32), back = cast(near, DType::float64), inexact = ne(back, x);
  const UOp towards_zero = where(magnitude(x) < magnitude(back), as_bits(near) - u32(1), as_bits(near));
  return where(ne(x, x), near, as_float(where(inexact, towards_zero | u32(1), as_bits(near))));
}

/// An integer as a float32 that rounds further to a narrow float as the integer itself would.
UOp integer_to_float32(const UOp& x) {
  const DType d = x.dtype();
  if (bitsize(d) <= 16) return cast(x, DType::float32);
  if (bitsize(d) == 64) return long_to_float32(x, RoundTo::odd);
  // Of a large one the lowest 8 bits only say whether there is more: a float32 holds the rest.
  const auto num = [&](int64_t v) { return constant(d, v); };
  const UOp cut = (x & num(-256)) | where(eq(x & num(255), num(0)), num(0), num(256));
  const UOp top = x >> num(24), small = is_unsigned(d) ? eq(top, num(0)) : eq(top, num(0)) | eq(top, num(-1));
  return cast(where(small, x, cut), DType::float32);
}

/// Ops on values of a dtype whose result is always one. What has no -0 does not hold the negative of 0.
bool is_exact(Op op, DType d) { return op == Op::MAX || op == Op::WHERE || (!is_fp8_fnuz(d) && (op == Op::NEG || op == Op::TRUNC)); }

class Emulation {
 public:
  explicit Emulation(const Target& target) : target_(target) {}

  bool emulates(DType d) const { return is_float(d) && bitsize(d) < 32 && !target_.supports(d); }

  UOp operator()(const UOp& u, const UOps& sources) {
    const DType d = u.dtype();
    if (u.is(Op::STORE) && emulates(u.src(1).dtype())) {
      UOps s = sources;
      s[1] = to_storage(s[1], u.src(1).dtype());
      return u.with_src(s);
    }
    if (u.is(Op::BITCAST) && emulates(u.src(0).dtype())) {
      const UOp bits = to_storage(sources[0], u.src(0).dtype());
      return emulates(d) ? from_storage(bits, d) : bitcast(bits, d);
    }
    if (u.is(Op::WMMA)) return with_stored_factors(u, sources);
    if (!emulates(d)) return u.with_src(sources);
    switch (u.op()) {
      case Op::CONST: return constant(u.arg_as<ConstArg>().value.cast(DType::float32));
      case Op::PARAM:
        if (is_image(u)) return u.with_src(sources);  // it converts
        [[fallthrough]];
      case Op::BUFFER: return UOp(u.op(), storage_of(d), sources, u.arg());
      case Op::INDEX:
      case Op::AFTER: return UOp(u.op(), sources[0].dtype(), sources, u.arg());
      case Op::LOAD: return load(u, sources);
      case Op::BITCAST: return from_storage(bitcast(sources[0], storage_of(d)), d);
      case Op::CAST: return convert(u.src(0).dtype(), sources[0], d);
      case Op::WHERE: return chosen(u, sources);
      default: break;
    }
    const UOp wide(u.op(), DType::float32, sources, u.arg());
    return u.in(Group::alu) && !is_exact(u.op(), d) ? rounded(wide, d) : wide;
  }

 private:
  /// A value that was just made of its bits has them; what is only moved stays as it is.
  UOp to_storage(const UOp& x, DType d) const {
    const Decoded* known = decoded_.find(x);
    if (known && known->dtype == d) return cast(known->bits, storage_of(d));
    if (const Scalar* c = const_value(x)) return constant(Scalar::from_uint(c->cast(d).storage_bits(), storage_of(d)));
    return cast(bits_of(x, d), storage_of(d));
  }
  // The target's own conversions, where it has them.
  UOp bits_of(const UOp& x, DType d) const {
    return target_.converts(d) ? cast(bitcast(cast(x, d), storage_of(d)), DType::uint32) : encode_float(x, d);
  }
  UOp value_of(const UOp& bits, DType d) const {
    return target_.converts(d) ? cast(bitcast(cast(bits, storage_of(d)), d), DType::float32) : decode_float(bits, d);
  }
  UOp chosen(const UOp& u, const UOps& sources) {
    const DType d = u.dtype();
    const auto bits = [&](const UOp& x) { return cast(to_storage(x, d), DType::uint32); };
    return keep(UOp(Op::WHERE, DType::float32, sources, u.arg()), where(sources[0], bits(sources[1]), bits(sources[2])), d);
  }
  /// A tensor core takes the values as they are in memory, and those that it reads there are.
  UOp with_stored_factors(const UOp& u, UOps sources) const {
    for (size_t i = 0; i < 2; ++i) {
      const DType d = u.src(i).dtype();
      if (!emulates(d) || sources[i].is(Op::INDEX)) continue;
      UOps bits;
      for (const UOp& x : sources[i].src()) bits.push_back(to_storage(x, d));
      sources[i] = stack(bits);
    }
    return u.with_src(sources);
  }
  UOp from_storage(const UOp& bits, DType d) { return decoded(cast(bits, DType::uint32), d); }
  UOp rounded(const UOp& x, DType d) { return decoded(bits_of(x, d), d); }
  UOp decoded(const UOp& bits, DType d) { return keep(value_of(bits, d), bits, d); }
  UOp keep(const UOp& value, const UOp& bits, DType d) {
    decoded_[value] = {bits, d};
    return value;
  }

  UOp load(const UOp& u, const UOps& sources) {
    const DType d = u.dtype();
    UOps s = sources;
    if (s.size() > 1) s[1] = is_const(u.src(1), 0) ? constant(storage_of(d), 0) : to_storage(s[1], d);
    return from_storage(UOp(Op::LOAD, storage_of(d), s, u.arg()), d);
  }

  /// A conversion rounds once, whatever it comes from.
  UOp convert(DType from, const UOp& x, DType to) {
    if (emulates(from) && can_lossless_cast(from, to)) return x;
    if (from == DType::float64) return rounded(round_to_odd(x), to);
    if (is_int(from)) return rounded(integer_to_float32(x), to);
    return rounded(cast(x, DType::float32), to);
  }

  const Target& target_;
  struct Decoded {
    UOp bits;
    DType dtype = DType::void_;
  };
  NodeCache<Decoded> decoded_;  // by the float32 value
};

}  // namespace

UOp emulate_dtypes(const UOp& sink, const Target& target) {
  Emulation emulation(target);
  return rebuild(sink, [&](const UOp& u, const UOps& sources) { return emulation(u, sources); });
}

Target without_dtypes(Target target, std::string_view names) {
  while (!names.empty()) {
    const size_t comma = names.find(',');
    const DType d = parse_dtype(names.substr(0, comma));
    if (!is_long(d) && !(is_float(d) && bitsize(d) < 32)) {
      throw ValueError(fmt::format("EMULATED_DTYPES: {} cannot be emulated; float16, bfloat16, fp8, int64 and uint64 can", repr(d)));
    }
    target.drop_dtype(d);
    names = comma == names.npos ? std::string_view() : names.substr(comma + 1);
  }
  return target;
}

}  // namespace tinygrad::codegen
