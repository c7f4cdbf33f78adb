// Operators of two numbers that are computed element by element.
#include <cmath>
#include <numbers>

#include "frontend/aten/promotion.h"

namespace tinygrad::aten {

namespace {

/// a + alpha * b, of bools: or.
Results scaled_sum(const Call& c, std::string_view first, std::string_view second, bool negative) {
  const auto [operands, dtype] = promoted(c, {first, second});
  const Value& alpha = c["alpha"];
  if (!is_float(dtype) && alpha.get_if<double>()) c.fail("alpha is a float beside integers");
  if (is_bool(dtype)) {
    if (negative) c.fail("bools are not subtracted; use logical_xor or bitwise_not");
    return one(operands[0] | (operands[1] & typed_number(alpha, dtype, operands[1].device())));
  }
  const Tensor &a = operands[0], &b = operands[1];
  if (is_number(alpha, 1)) return one(negative ? a - b : a + b);
  const DType wide = wide_type(dtype);
  const Tensor scaled = b.cast(wide) * typed_number(alpha, wide, b.device());
  return one((negative ? a.cast(wide) - scaled : a.cast(wide) + scaled).cast(dtype));
}
Results add(const Call& c) { return scaled_sum(c, "self", "other", false); }
Results sub(const Call& c) { return scaled_sum(c, "self", "other", true); }
Results reversed_sub(const Call& c) { return scaled_sum(c, "other", "self", true); }

Results mul(const Call& c) {
  const auto [x, dtype] = promoted(c, {"self", "other"});
  return one(is_bool(dtype) ? x[0] & x[1] : x[0] * x[1]);
}

Tensor divided(const Tensor& a, const Tensor& b, Rounding rounding) {
  // bfloat16 and float16 are divided in float32 and rounded once.
  const DType dtype = a.dtype(), wide = wide_type(dtype);
  return a.cast(wide).div(b.cast(wide), rounding).cast(dtype);
}
Results true_div(const Call& c) {
  const Promoted x = promoted_floats(c, {"self", "other"});
  return one(x[0] / x[1]);
}
Results div_by_mode(const Call& c) {
  if (!c.has("rounding_mode")) return true_div(c);
  const std::string_view mode = c.text("rounding_mode");
  if (mode != "floor" && mode != "trunc") c.fail("rounding_mode is neither floor nor trunc");
  const Promoted x = promoted(c, {"self", "other"});
  if (is_bool(x.dtype)) c.fail("bools have no rounded quotient");
  return one(divided(x[0], x[1], mode == "floor" ? Rounding::floor : Rounding::trunc));
}
Results floor_divide(const Call& c) {
  const Promoted x = promoted(c, {"self", "other"});
  if (is_bool(x.dtype)) c.fail("bools have no rounded quotient");
  return one(divided(x[0], x[1], Rounding::floor));
}

using Method = Tensor (Tensor::*)(const Operand&) const;
template <Method method>
Results same_type(const Call& c) {
  const Promoted x = promoted(c, {"self", "other"});
  return one((x[0].*method)(x[1]));
}
template <Method method>
Results numeric(const Call& c) {
  const Promoted x = promoted(c, {"self", "other"});
  if (is_bool(x.dtype)) c.fail("not for bools");
  return one((x[0].*method)(x[1]));
}
template <Method method>
Results real(const Call& c) {
  const Promoted x = promoted_floats(c, {"self", "other"});
  return one((x[0].*method)(x[1]));
}
template <Method method>
Results bits(const Call& c) {
  const Promoted x = promoted(c, {"self", "other"});
  if (is_float(x.dtype)) c.fail("not for floats");
  return one((x[0].*method)(x[1]));
}
/// Shifts by all bits and more: to the left 0, to the right 0 or -1.
Results shift(const Call& c, bool left) {
  const Promoted x = promoted(c, {"self", "other"});
  if (is_float(x.dtype) || is_bool(x.dtype)) c.fail("only for integers");
  const int width = bitsize(x.dtype);
  const Tensor zero = x[0].zeros_like(), out_of_width = (x[1] < 0) | (x[1] >= width);
  const Tensor beyond = left || is_unsigned(x.dtype) ? zero : (x[0] < 0).where(x[0].full_like(-1), zero);
  const Tensor by = out_of_width.where(x[1].zeros_like(), x[1]);
  return one(out_of_width.where(beyond, left ? x[0] << by : x[0] >> by));
}

Results power(const Call& c) {
  const Promoted x = promoted(c, {"self", "exponent"});
  if (is_bool(x.dtype)) c.fail("not for bools");
  const Value& exponent = c["exponent"];
  if (!is_float(x.dtype) && exponent.is_number() && exponent.number() < 0) c.fail("integers to a negative power");
  const DType wide = wide_type(x.dtype);
  const Tensor base = x[0].cast(wide);
  if (exponent.is_number() && is_float(wide)) {
    const double e = exponent.number();
    if (e == 0.5) return one(base.sqrt().cast(x.dtype));
    if (e == 2) return one((base * base).cast(x.dtype));
    if (e == 3) return one((base * base * base).cast(x.dtype));
    if (e == -0.5) return one(base.sqrt().reciprocal().cast(x.dtype));
    if (e == -1) return one(base.reciprocal().cast(x.dtype));
    if (e == -2) return one((base * base).reciprocal().cast(x.dtype));
  }
  return one(base.pow(x[1].cast(wide)).cast(x.dtype));
}

/// NaN gives way to a number.
Results number_over_nan(const Call& c, bool greater) {
  const Promoted x = promoted(c, {"self", "other"});
  const Tensor chosen = greater ? x[0].maximum(x[1]) : x[0].minimum(x[1]);
  if (!is_float(x.dtype)) return one(chosen);
  return one(x[0].isnan().where(x[1], x[1].isnan().where(x[0], chosen)));
}

/// The angle of the point (x, y); exact at infinities and signed zeros.
Results atan2(const Call& c) {
  const Promoted p = promoted_floats(c, {"self", "other"});
  const DType wide = wide_type(p.dtype);
  const Tensor y = p[0].cast(wide), x = p[1].cast(wide);
  const Tensor ay = y.abs(), ax = x.abs(), most = ax.maximum(ay), least = ax.minimum(ay);
  const Tensor both_infinite = least.isinf();
  // Of the smaller to the greater magnitude, between 0 and 45 degrees.
  const Tensor ratio = both_infinite.where(most.full_like(1), (most.eq(0)).where(least.zeros_like(), least / most));
  const Tensor low = ratio.atan();
  const Tensor first = (ay > ax).where(least.full_like(std::numbers::pi / 2) - low, low);
  const Tensor is_left = x.full_like(1).copysign(x) < 0;
  const Tensor angle = is_left.where(first.full_like(std::numbers::pi) - first, first).copysign(y);
  return one((x.isnan() | y.isnan()).where(x + y, angle).cast(p.dtype));
}

Results hypot(const Call& c) {
  const Promoted p = promoted(c, {"self", "other"});
  if (!is_float(p.dtype)) c.fail("only for floats");
  const DType wide = wide_type(p.dtype);
  const Tensor a = p[0].cast(wide).abs(), b = p[1].cast(wide).abs(), most = a.maximum(b), least = a.minimum(b);
  const Tensor ratio = (most.eq(0) | least.isinf()).where(least.zeros_like(), least / most);
  const Tensor out = most * (ratio * ratio + 1).sqrt();
  return one((a.isinf() | b.isinf()).where(most.full_like(INFINITY), out).cast(p.dtype));
}

Results logaddexp2(const Call& c) {
  const Promoted p = promoted(c, {"self", "other"});
  const double ln2 = std::numbers::ln2;
  const DType wide = wide_type(p.dtype);
  return one(((p[0].cast(wide) * ln2).logaddexp(p[1].cast(wide) * ln2) / ln2).cast(p.dtype));
}

/// self * log(other), 0 where self is 0 unless other is NaN.
Results xlogy(const Call& c, bool plus_one) {
  const Promoted p = promoted_floats(c, {"self", "other"});
  const Tensor logarithm = plus_one ? log1p(p[1].cast(wide_type(p.dtype))).cast(p.dtype) : p[1].log();
  return one(p[1].isnan().where(p[1], p[0].eq(0).where(p[0].zeros_like(), p[0] * logarithm)));
}

Results heaviside(const Call& c) {
  const Promoted p = promoted(c, {"self", "values"});
  return one(p[0].eq(0).where(p[1], (p[0] > 0).cast(p.dtype)));
}

/// self + value * a (* or /) b.
Results fused(const Call& c, bool quotient) {
  const auto [x, dtype] = promoted(c, {"self", "tensor1", "tensor2"});
  if (quotient && !is_float(dtype)) c.fail("integers are not divided; convert them to floats");
  if (!is_float(dtype) && c["value"].get_if<double>() && c.number("value") != std::trunc(c.number("value")))
    c.fail("value is a float beside integers");
  const DType wide = wide_type(dtype);
  const Tensor a = x[1].cast(wide), b = x[2].cast(wide);
  Tensor term = quotient ? a / b : a * b;
  if (!is_number(c["value"], 1)) term = typed_number(c["value"], wide, a.device()) * term;
  return one((x[0].cast(wide) + term).cast(dtype));
}

Results lerp(const Call& c) {
  const Promoted x = promoted(c, {"self", "end"});
  const DType wide = wide_type(x.dtype);
  const Tensor start = x[0].cast(wide), end = x[1].cast(wide), weight = typed(c["weight"], wide, start.device());
  const Tensor step = end - start;
  return one((weight.abs() < 0.5).where(start + weight * step, end - step * (1 - weight)).cast(x.dtype));
}

Results ldexp(const Call& c) {
  const Promoted x = promoted_floats(c, {"self", "other"});
  return one(x[0] * x[1].exp2());
}

}  // namespace

std::vector<Row> arithmetic_operators() {
  const auto shift_left = [](const Call& c) { return shift(c, true); };
  const auto shift_right = [](const Call& c) { return shift(c, false); };
  return {
      {"aten.add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", add},
      {"aten.add.Scalar(Tensor self, Scalar other, Scalar alpha=1)", add},
      {"aten.sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", sub},
      {"aten.sub.Scalar(Tensor self, Scalar other, Scalar alpha=1)", sub},
      {"aten.subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", sub},
      {"aten.rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)", reversed_sub},
      {"aten.rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1)", reversed_sub},
      {"aten.mul.Tensor(Tensor self, Tensor other)", mul},
      {"aten.mul.Scalar(Tensor self, Scalar other)", mul},
      {"aten.multiply.Tensor(Tensor self, Tensor other)", mul},
      {"aten.div.Tensor(Tensor self, Tensor other)", true_div},
      {"aten.div.Scalar(Tensor self, Scalar other)", true_div},
      {"aten.divide.Tensor(Tensor self, Tensor other)", true_div},
      {"aten.true_divide.Tensor(Tensor self, Tensor other)", true_div},
      {"aten.div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode)", div_by_mode},
      {"aten.div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode)", div_by_mode},
      {"aten.floor_divide.default(Tensor self, Tensor other)", floor_divide},
      {"aten.floor_divide.Scalar(Tensor self, Scalar other)", floor_divide},
      {"aten.remainder.Tensor(Tensor self, Tensor other)", numeric<&Tensor::mod>},
      {"aten.remainder.Scalar(Tensor self, Scalar other)", numeric<&Tensor::mod>},
      {"aten.remainder.Scalar_Tensor(Scalar self, Tensor other)", numeric<&Tensor::mod>},
      {"aten.fmod.Tensor(Tensor self, Tensor other)", numeric<&Tensor::fmod>},
      {"aten.fmod.Scalar(Tensor self, Scalar other)", numeric<&Tensor::fmod>},
      {"aten.pow.Tensor_Tensor(Tensor self, Tensor exponent)", power},
      {"aten.pow.Tensor_Scalar(Tensor self, Scalar exponent)", power},
      {"aten.pow.Scalar(Scalar self, Tensor exponent)", power},
      {"aten.maximum.default(Tensor self, Tensor other)", same_type<&Tensor::maximum>},
      {"aten.minimum.default(Tensor self, Tensor other)", same_type<&Tensor::minimum>},
      {"aten.max.other(Tensor self, Tensor other)", same_type<&Tensor::maximum>},
      {"aten.min.other(Tensor self, Tensor other)", same_type<&Tensor::minimum>},
      {"aten.fmax.default(Tensor self, Tensor other)", [](const Call& c) { return number_over_nan(c, true); }},
      {"aten.fmin.default(Tensor self, Tensor other)", [](const Call& c) { return number_over_nan(c, false); }},
      {"aten.atan2.default(Tensor self, Tensor other)", atan2},
      {"aten.arctan2.default(Tensor self, Tensor other)", atan2},
      {"aten.hypot.default(Tensor self, Tensor other)", hypot},
      {"aten.copysign.Tensor(Tensor self, Tensor other)", real<&Tensor::copysign>},
      {"aten.copysign.Scalar(Tensor self, Scalar other)", real<&Tensor::copysign>},
      {"aten.logaddexp.default(Tensor self, Tensor other)", same_type<&Tensor::logaddexp>},
      {"aten.logaddexp2.default(Tensor self, Tensor other)", logaddexp2},
      {"aten.xlogy.Tensor(Tensor self, Tensor other)", [](const Call& c) { return xlogy(c, false); }},
      {"aten.xlogy.Scalar_Other(Tensor self, Scalar other)", [](const Call& c) { return xlogy(c, false); }},
      {"aten.xlogy.Scalar_Self(Scalar self, Tensor other)", [](const Call& c) { return xlogy(c, false); }},
      {"aten.special_xlog1py.default(Tensor self, Tensor other)", [](const Call& c) { return xlogy(c, true); }},
      {"aten.heaviside.default(Tensor self, Tensor values)", heaviside},
      {"aten.ldexp.Tensor(Tensor self, Tensor other)", ldexp},
      {"aten.bitwise_and.Tensor(Tensor self, Tensor other)", bits<&Tensor::bitwise_and>},
      {"aten.bitwise_and.Scalar(Tensor self, Scalar other)", bits<&Tensor::bitwise_and>},
      {"aten.bitwise_and.Scalar_Tensor(Scalar self, Tensor other)", bits<&Tensor::bitwise_and>},
      {"aten.bitwise_or.Tensor(Tensor self, Tensor other)", bits<&Tensor::bitwise_or>},
      {"aten.bitwise_or.Scalar(Tensor self, Scalar other)", bits<&Tensor::bitwise_or>},
      {"aten.bitwise_or.Scalar_Tensor(Scalar self, Tensor other)", bits<&Tensor::bitwise_or>},
      {"aten.bitwise_xor.Tensor(Tensor self, Tensor other)", bits<&Tensor::bitwise_xor>},
      {"aten.bitwise_xor.Scalar(Tensor self, Scalar other)", bits<&Tensor::bitwise_xor>},
      {"aten.bitwise_xor.Scalar_Tensor(Scalar self, Tensor other)", bits<&Tensor::bitwise_xor>},
      {"aten.__and__.Tensor(Tensor self, Tensor other)", bits<&Tensor::bitwise_and>},
      {"aten.__and__.Scalar(Tensor self, Scalar other)", bits<&Tensor::bitwise_and>},
      {"aten.__or__.Tensor(Tensor self, Tensor other)", bits<&Tensor::bitwise_or>},
      {"aten.__or__.Scalar(Tensor self, Scalar other)", bits<&Tensor::bitwise_or>},
      {"aten.__xor__.Tensor(Tensor self, Tensor other)", bits<&Tensor::bitwise_xor>},
      {"aten.__xor__.Scalar(Tensor self, Scalar other)", bits<&Tensor::bitwise_xor>},
      {"aten.bitwise_left_shift.Tensor(Tensor self, Tensor other)", shift_left},
      {"aten.bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other)", shift_left},
      {"aten.bitwise_right_shift.Tensor(Tensor self, Tensor other)", shift_right},
      {"aten.bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other)", shift_right},
      {"aten.__lshift__.Tensor(Tensor self, Tensor other)", shift_left},
      {"aten.__lshift__.Scalar(Tensor self, Scalar other)", shift_left},
      {"aten.__rshift__.Tensor(Tensor self, Tensor other)", shift_right},
      {"aten.__rshift__.Scalar(Tensor self, Scalar other)", shift_right},
      {"aten.addcmul.default(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)",
       [](const Call& c) { return fused(c, false); }},
      {"aten.addcdiv.default(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)",
       [](const Call& c) { return fused(c, true); }},
      {"aten.lerp.Scalar(Tensor self, Tensor end, Scalar weight)", lerp},
      {"aten.lerp.Tensor(Tensor self, Tensor end, Tensor weight)", lerp},
  };
}

}  // namespace tinygrad::aten
